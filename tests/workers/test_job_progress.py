"""Progress of a running job: phases with counters that never show more than is known."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import translation

from tests.factories import work
from workers.core.models import Job
from workers.core.states import Event, JobPhase
from workers.jobs import transitions
from workers.jobs.output import metrics
from workers.jobs.output.job_progress import JobProgress

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def running(alice, cluster):
    return work.job(alice, cluster, state="running")


def report(job, *rows):
    with work.run_dir(job).metrics.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def attempt(job):
    return job.attempts.get()


def applied(*rows: dict) -> JobProgress:
    progress = JobProgress()
    for row in rows:
        progress.apply(row)
    return progress


def test_progress_never_decreases_within_a_phase_and_begins_again_in_the_next():
    rows = [{"phase": "learning", "progress": 0.6, "eta_s": 90}, {"phase": "learning", "progress": 0.4}]

    assert applied(*rows).progress == 0.6
    following = applied(*rows, {"phase": "scoring"})
    assert (following.phase, following.progress, following.eta_s) == ("scoring", None, None)
    assert applied(*rows, {"phase": "scoring", "progress": 0.1}).progress == 0.1


def test_progress_is_unknown_before_the_first_step_and_never_complete_while_it_runs():
    assert applied({"phase": "packing", "phase_done": 0, "phase_total": 900, "progress": 0}).progress is None
    assert applied({"phase": "packing", "phase_done": 900, "phase_total": 900}).progress == 0.99
    assert applied({"phase": "learning", "progress": 1.0, "eta_s": 0}).progress == 0.99


def test_remaining_time_of_less_than_a_second_is_not_shown():
    assert applied({"eta_s": 12.5}).eta_s == 12.5
    assert applied({"eta_s": 12.5}, {"eta_s": 0.2}).eta_s is None
    assert applied({"eta_s": 12.5}, {"step": 3}).eta_s == 12.5


def test_counter_gives_the_share_where_the_program_reports_none():
    progress = applied({"phase": "scoring", "phase_done": 30, "phase_total": 120})

    assert (progress.phase_done, progress.phase_total, progress.progress) == (30, 120, 0.25)
    progress.apply({"phase": "scoring", "phase_done": 20, "phase_total": 120})
    assert (progress.phase_done, progress.progress) == (30, 0.25)


@pytest.mark.parametrize(
    "row",
    [
        {"phase_done": 5, "phase_total": 3}, {"phase_done": -1, "phase_total": 3}, {"phase_done": 0, "phase_total": 0},
        {"phase_done": "five", "phase_total": 10}, {"progress": float("nan")}, {"phase_times": ["learning"]},
        {"phase_done": 1, "phase_total": 1e300}, {"phase": "dancing"},
    ],
)  # fmt: skip
def test_wrong_values_change_nothing(row):
    assert applied({"phase": "learning", "progress": 0.5}, row) == applied({"phase": "learning", "progress": 0.5})


def test_times_of_phases_keep_known_phases_and_finite_seconds():
    times = {"learning": {"spent_s": 12.34, "left_s": -3}, "dancing": {"spent_s": 1}, "scoring": {"spent_s": "x"}}

    assert applied({"phase_times": times}).phase_times == {"learning": {"spent_s": 12.3, "left_s": 0.0}}


def test_ingested_progress_goes_on_from_the_row_and_is_shown_by_the_api(running, alice):
    report(running, {"step": 1, "phase": "learning", "phase_done": 40, "phase_total": 100, "progress": 0.4})
    metrics.ingest(attempt(running))
    times = {"packing": {"spent_s": 9}, "learning": {"spent_s": 20, "left_s": 30}}
    report(running, {"step": 2, "phase": "learning", "progress": 0.3, "eta_s": 35, "phase_times": times})
    metrics.ingest(attempt(running))
    client = Client()
    client.force_login(alice)

    row = client.get(f"/api/v1/jobs/{running.pk}/").json()
    page = client.get(f"/jobs/{running.pk}/?tab=overview").content.decode()

    assert (row["phase"], row["phase_label"], row["progress"]) == ("learning", "Training", 0.4)
    assert (row["phase_done"], row["phase_total"], row["eta_s"]) == (40, 100, 35)
    assert row["phase_times"] == [
        {"phase": "packing", "name": "Preparing data", "spent_s": 9.0, "left_s": None},
        {"phase": "learning", "name": "Training", "spent_s": 20.0, "left_s": 30.0},
    ]
    assert "40 / 100" in page
    assert "Preparing data 9 s · Training 20 s (30 s left)" in page


def test_page_shows_a_phase_without_a_percentage_before_its_first_step(running, alice):
    report(running, {"step": 0, "phase": "packing", "phase_done": 0, "phase_total": 50})
    metrics.ingest(attempt(running))
    client = Client()
    client.force_login(alice)

    page = client.get(f"/jobs/{running.pk}/?tab=overview").content.decode()

    bar = page[page.index("data-job-progress") :][:1200]
    assert "Preparing data" in bar
    assert "0 / 50" in bar
    assert "%</span>" not in bar
    assert 'value="' not in bar[: bar.index("</progress>")]


def test_late_lines_leave_the_progress_of_a_job_that_ended(running):
    transitions.move(running.pk, Event.EXITED_OK, attempt=running.attempt_number)
    report(running, {"step": 9, "phase": "exporting", "progress": 0.5, "phase_times": {"exporting": {"spent_s": 4}}})

    metrics.ingest(attempt(running))

    job = Job.objects.get(pk=running.pk)
    assert (job.progress, job.phase) == (1.0, "")
    assert job.phase_times == {"exporting": {"spent_s": 4.0}}


def test_job_pages_script_names_every_phase_alike():
    script = (Path(settings.BASE_DIR) / "workers/static/workers/job.js").read_text()

    named = dict(re.findall(r'^  (\w+): \(\) => t\("([^"]+)"\)', script, re.MULTILINE))

    with translation.override("en"):
        assert named == {phase.value: str(phase.label) for phase in JobPhase if phase.value}
