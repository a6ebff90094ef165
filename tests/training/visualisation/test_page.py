"""The menu Training visualisation: any runs one may see, by whatever they show."""

import json

import pytest

from tests.factories import curves, shown, work
from tests.factories import training as trainings
from training.experiments.boards import services as boards
from training.experiments.visualisation import runs
from training.programs.models import CodeSnapshot
from workers.jobs.output import media

pytestmark = pytest.mark.django_db
PAGE = "/training/visualisation/"


@pytest.fixture
def run(alice, cluster):
    job = work.job(alice, cluster, name="spiral", state="running")
    curves.report(job.attempts.get(), "train/loss", [(0, 1.0), (1, 0.5)])
    shown.everything(job)
    return job


def test_visualisation_stands_in_the_menu(as_alice):
    assert f'href="{PAGE}"' in as_alice.get("/experiments/").content.decode()


def test_visualisation_offers_runs_that_have_something_to_show(as_alice, alice, cluster, run):
    silent = work.job(alice, cluster, name="silent", state="running")
    curves.report(silent.attempts.get(), "system/cpu", [(0, 1.0)])

    page = as_alice.get(PAGE)
    none = as_alice.get(f"{PAGE}?q=nothing of that name")

    assert [row.pk for row in page.context["page"].rows] == [run.pk]
    contents = dict(page.context["page"].rows[0].contents)
    assert (contents["Scalars"], contents["Images"]) == (1, 1)
    assert f'href="?run={run.pk}"' in page.content.decode()
    assert none.context["page"].rows == []


def test_visualisation_of_nothing_says_how_to_write_something(as_alice, alice, cluster):
    quiet = work.job(alice, cluster, name="quiet", state="running")

    for address in (PAGE, f"{PAGE}?run={quiet.pk}", f"{PAGE}?run={quiet.pk}&view=images"):
        text = as_alice.get(address).content.decode()
        assert "SummaryWriter" in text
        assert "import aip" in text
        assert "Lightning" in text


@pytest.mark.parametrize("view", [view for view in runs.VIEWS if view.kind and view.name != "parameters"])
def test_visualisation_hands_each_view_its_series(as_alice, run, view):
    page = as_alice.get(f"{PAGE}?run={run.pk}&view={view.name}")

    rows = page.context["series"]
    assert len(rows) == 1
    many = view.name in ("images", "histograms", "distributions", "texts")
    assert (rows[0]["run"], rows[0]["steps"]) == (run.pk, 5 if many else 1)
    assert json.dumps(rows[0]["name"]) in page.content.decode()


def test_visualisation_puts_parameters_of_runs_beside_each_other_and_hides_secrets(as_alice, alice, cluster, run):
    other = work.job(alice, cluster, name="run 8", state="running")
    shown.show(other, [shown.Shown("params", "hparams", 0, shown.AT, {"values": {"lr": 0.3}})])

    page = as_alice.get(f"{PAGE}?run={run.pk}&run={other.pk}&view=parameters")

    assert dict(page.context["parameters"])["lr"] == [0.1, 0.3]
    assert "hf_secret" not in page.content.decode()


def test_visualisation_draws_curves_of_commands_and_trainings_together(as_alice, api, alice, run):
    training = trainings.training(alice, name="preset run", state="running")
    curves.report(training.job.attempts.get(), "train/loss", [(0, 2.0), (1, 1.0)])
    asked = f"run={run.pk}&run={training.job_id}"

    page = as_alice.get(f"{PAGE}?{asked}")
    grid = api.get(f"/api/v1/visualisation/curves/?{asked}&key=train/loss").json()

    assert page.context["view"].name == "scalars"
    assert page.context["keys"] == ["train/loss"]
    assert [(line["id"], line["mean"]) for line in grid[0]["runs"]] == [
        (run.pk, [1.0, 0.5]), (training.job_id, [2.0, 1.0]),
    ]  # fmt: skip


def test_visualisation_begins_with_what_there_is(as_alice, alice, cluster):
    job = work.job(alice, cluster, state="running")
    shown.show(job, [shown.Shown("text", "notes", 1, shown.AT, {"text": "x"})])

    assert as_alice.get(f"{PAGE}?run={job.pk}").context["view"].name == "texts"


def test_visualisation_says_what_was_not_kept(as_alice, run):
    run.attempts.get().report_files.create(path="outputs/a", missed={"not_finite": 2})

    assert "2 values are not finite" in as_alice.get(f"{PAGE}?run={run.pk}").content.decode()


def test_visualisation_has_the_real_tensorboard_beside_it(as_alice, as_olga, run, monkeypatch):
    monkeypatch.setattr(boards, "folder", lambda job: work.run_dir(job).outputs)

    own = as_alice.get(f"{PAGE}?run={run.pk}").content.decode()
    others = as_olga.get(f"{PAGE}?run={run.pk}").content.decode()

    assert f'action="/jobs/{run.pk}/board/"' in own
    assert f'action="/jobs/{run.pk}/board/"' not in others


def test_visualisation_shows_nobody_the_runs_of_others(as_bob, as_anna, client, run):
    alone = as_bob.get(f"{PAGE}?run={run.pk}")

    assert (alone.status_code, list(alone.context["page"].rows)) == (404, [])
    assert "spiral" not in alone.content.decode()
    assert as_bob.get(f"/api/v1/visualisation/curves/?run={run.pk}&key=train/loss").status_code == 404
    assert as_anna.get(PAGE).status_code == 403
    assert client.get(PAGE).status_code == 302


def test_visualisation_refuses_more_runs_than_can_be_seen_at_once(as_alice, alice, cluster):
    jobs = [work.job(alice, cluster, state="succeeded") for _ in range(runs.MAX_RUNS + 1)]
    page = as_alice.get(f"{PAGE}?{'&'.join(f'run={job.pk}' for job in jobs)}")

    assert page.status_code in (400, 422)
    assert str(runs.MAX_RUNS) in page.context["refused"].message


def test_job_page_leads_to_what_the_job_shows(as_alice, alice, cluster, run):
    without = work.job(alice, cluster, state="running")

    assert f'href="{PAGE}?run={run.pk}"' in as_alice.get(f"/jobs/{run.pk}/?tab=metrics").content.decode()
    assert f"{PAGE}?run=" not in as_alice.get(f"/jobs/{without.pk}/?tab=metrics").content.decode()


def test_visualisation_asks_the_database_little(as_alice, alice, cluster, django_assert_max_num_queries):
    jobs = [work.job(alice, cluster, state="running") for _ in range(12)]
    for job in jobs:
        shown.show(job, [shown.Shown("text", "notes", 1, shown.AT, {"text": "x"})])
    address = f"{PAGE}?{'&'.join(f'run={job.pk}' for job in jobs)}&view=texts"
    as_alice.get(address)

    with django_assert_max_num_queries(60):
        as_alice.get(address)


def test_comparison_shows_parameters_that_own_code_reported_itself(as_alice, alice):
    training = trainings.training(alice, name="own", state="running")
    code = CodeSnapshot.objects.create(id="a" * 32, owner=alice, source="upload", origin="own.zip")
    type(training).objects.update(preset="", params={}, code=code)
    shown.show(training.job, [shown.Shown("params", "hparams", 0, shown.AT, {"values": {"momentum": 0.9}})])

    text = as_alice.get(f"/training/compare/?run={training.pk}").content.decode()

    assert "momentum" in text


def test_figures_are_pages_without_origin_network_and_platform(as_alice, run):
    item = media.items_of(run).get(series__kind="figure")

    response = as_alice.get(f"/api/v1/jobs/{run.pk}/media/{item.pk}/file/")

    policy = response["Content-Security-Policy"]
    assert response["Content-Type"] == "text/html"
    assert {"sandbox allow-scripts", "default-src 'none'", "frame-ancestors 'self'"} <= set(policy.split("; "))
    assert "connect-src" not in policy
    assert response["X-Frame-Options"] == "SAMEORIGIN"
