"""Tabs of a job's page: each has an address of its own, for every kind."""

import re

import pytest

from tests.factories import curves, training, work
from workers.jobs import job_tabs

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(alice, cluster):
    job = work.job(alice, cluster, name="digits", state="running")
    work.run_dir(job).outputs.mkdir(parents=True)
    return job


def report(job, key):
    curves.report(job.attempts.get(), key, [(1, 0.5)])


def current(page):
    return re.findall(r'aria-current="page">([^<]+)</a>', page.split('class="tabs', 1)[1])


@pytest.mark.parametrize("tab", job_tabs.TABS, ids=lambda tab: tab.name)
def test_job_page_has_each_tab_under_its_address(as_alice, job, tab):
    page = as_alice.get(f"/jobs/{job.pk}/?tab={tab.name}").content.decode()

    assert current(page)[:1] == [str(tab.label)]
    assert 'id="job-head"' in page


def test_job_page_shows_the_overview_for_a_tab_that_is_not_there(as_alice, job):
    assert current(as_alice.get(f"/jobs/{job.pk}/?tab=nothing").content.decode())[:1] == ["Overview"]


def test_job_page_puts_parts_where_they_belong(as_alice, job):
    pages = {tab.name: as_alice.get(f"/jobs/{job.pk}/?tab={tab.name}").content.decode() for tab in job_tabs.TABS}

    def where(part):
        return [name for name, page in pages.items() if part in page]

    assert where("data-log=") == ["overview", "console"]
    assert where("data-charts=") == ["metrics"]
    assert where('id="job-files"') == ["files"]
    assert where('id="job-events"') == ["overview", "events"]
    assert where('id="panel-ports"') == ["ports"]
    assert where('id="spec-json"') == ["spec"]


def test_job_page_overview_draws_curves_once_the_program_reports_figures(as_alice, job):
    report(job, "system/cpu")
    without = as_alice.get(f"/jobs/{job.pk}/").content.decode()
    report(job, "train/loss")

    assert "data-charts=" not in without
    assert "data-charts=" in as_alice.get(f"/jobs/{job.pk}/").content.decode()


def test_job_page_spec_hides_what_is_named_like_a_secret(as_alice, alice, cluster):
    job = work.job(alice, cluster, spec={"lr": 0.1, "env": {"hub_token": "hf_123456789"}, "argv": ["python"]})

    page = as_alice.get(f"/jobs/{job.pk}/?tab=spec").content.decode()

    assert "python" in page
    assert "hf_123456789" not in page


def test_training_tabs_are_found_by_the_words_of_any_job(as_alice, alice):
    trained = training.training(alice, state="running")

    by_job = as_alice.get(f"/jobs/{trained.job_id}/?tab=console")
    by_training = as_alice.get(by_job["Location"])
    plain = as_alice.get(f"/jobs/{trained.job_id}/")

    assert by_job["Location"] == f"/training/{trained.pk}/?tab=console"
    assert by_training["Location"] == f"/training/{trained.pk}/log/"
    assert plain["Location"] == f"/training/{trained.pk}/"
