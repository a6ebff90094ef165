"""Panels: what rooms above add to the page of a job."""

import re

import pytest
from django.template import engines

from tests.factories import work
from workers.jobs import job_page
from workers.jobs.job_page import Panel

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(alice, cluster):
    return work.job(alice, cluster, state="running")


@pytest.fixture
def two_panels(settings, tmp_path, monkeypatch):
    """Two panels: one for everybody, one that leaves itself out."""
    (tmp_path / "said.html").write_text("<p>{{ panel.word }} about job {{ job.pk }}</p>")
    monkeypatch.setattr(engines["django"].engine, "dirs", [*engines["django"].engine.dirs, tmp_path])
    for loader in engines["django"].engine.template_loaders:
        loader.reset()
    said = Panel("said", "said.html", lambda job, user: {"word": f"{user} hears"}, order=2)
    silent = Panel("silent", "said.html", lambda job, user: None, order=1)
    with job_page.PANELS.temporarily(said, silent):
        yield


def test_job_page_shows_the_panels_of_other_rooms(as_alice, job, two_panels):
    page = as_alice.get(f"/jobs/{job.pk}/").content.decode()

    assert f"Alice hears about job {job.pk}" in page or f"alice hears about job {job.pk}" in page
    assert 'id="panel-said"' in page
    assert re.search(r'id="panel-silent"[^>]* hidden>\s*</div>', page)


def test_panel_is_fetched_alone(as_alice, job, two_panels):
    answer = as_alice.get(f"/jobs/{job.pk}/panels/said/")

    assert f"hears about job {job.pk}" in answer.content.decode()
    assert "<html" not in answer.content.decode()


def test_panel_with_nothing_to_show_waits_hidden_for_the_job_to_move(as_alice, job, two_panels):
    answer = as_alice.get(f"/jobs/{job.pk}/panels/silent/")

    assert answer.status_code == 200
    assert re.fullmatch(r'\s*<div id="panel-silent"[^>]*job-moved[^>]* hidden>\s*</div>\s*', answer.content.decode())


def test_unknown_panel_is_not_found(as_alice, job, two_panels):
    assert as_alice.get(f"/jobs/{job.pk}/panels/unheard/").status_code == 404


def test_panel_of_a_job_is_not_found_by_others(as_bob, job, two_panels):
    assert as_bob.get(f"/jobs/{job.pk}/panels/said/").status_code == 404
