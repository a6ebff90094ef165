"""Lists of jobs show how far a job is, and the key metric of one that completed."""

from __future__ import annotations

import pytest

from tests.factories import work
from training.runs.models import TrainingJob
from workers.jobs import summaries

pytestmark = pytest.mark.django_db


@pytest.fixture
def jobs(alice, cluster):
    running = work.job(alice, cluster, name="running", state="running")
    type(running).objects.filter(pk=running.pk).update(phase="learning", phase_done=3, phase_total=12, progress=0.25)
    first = work.job(alice, cluster, name="starting", state="running")
    type(first).objects.filter(pk=first.pk).update(phase="packing", phase_done=120, phase_total=364, progress=0.33)
    done = work.job(alice, cluster, name="done", state="succeeded", kind="training")
    TrainingJob.objects.create(job=done, preset="detect", version_label="cells v1", metrics={"val/ap50": 0.91})
    failed = work.job(alice, cluster, name="broken", state="failed", kind="training")
    TrainingJob.objects.create(job=failed, preset="detect", version_label="cells v1", metrics={"val/ap50": 0.5})
    return [running, first, done, failed]


def test_all_jobs_show_progress_and_key_metrics(jobs, as_olga):
    html = as_olga.get("/tasks/").content.decode()

    assert 'value="0.2500"' in html
    assert '<progress class="progress" max="1" aria-label' in html  # before the first step: no percentage
    assert '<span class="num">120 / 364</span>' in html
    assert "33 %" not in html
    assert "AP50 · val 0.910" in html
    assert "AP50 · val 0.500" not in html  # a job that failed says why


def test_the_queue_shows_the_progress_of_running_jobs(jobs, as_alice):
    html = as_alice.get("/queue/").content.decode()

    assert 'value="0.2500"' in html
    assert '<span class="num">3 / 12</span>' in html


def test_key_metrics_take_one_query_for_each_kind(jobs, django_assert_num_queries):
    with django_assert_num_queries(1):
        metrics = summaries.key_metrics(jobs)

    assert metrics == {jobs[2].pk: "AP50 · val 0.910", jobs[3].pk: "AP50 · val 0.500"}
