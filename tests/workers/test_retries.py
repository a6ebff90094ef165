"""A job that fails is tried again as often as was requested, with growing pauses."""

from datetime import timedelta

import pytest
from django.utils.timezone import now

from tests.factories import work
from tests.workers.watched import ended, look
from workers.core.models import Job
from workers.jobs import actions
from workers.supervisor import records

pytestmark = pytest.mark.django_db


@pytest.fixture
def running(alice, cluster, kind):
    """A running job with two retries."""
    job = work.job(alice, cluster, state="running", retries=2, retry_pause_s=10)
    work.hold(job, work.node().devices.get(kind="cpu"), share=1)
    records.write(work.run_dir(job).path / records.SUPERVISOR, {"pid": 1, "start_ticks": 0, "boot_id": "gone"})
    return job


def fail_again(job):
    """The next attempt runs and fails."""
    number = job.attempt_number + 1
    Job.objects.filter(pk=job.pk).update(state="running", attempt_number=number)
    job.attempts.create(number=number, state="running")
    job.refresh_from_db()
    records.write(work.run_dir(job).path / records.SUPERVISOR, {"pid": 1, "start_ticks": 0, "boot_id": "gone"})
    ended(job)
    return look(job)


def pause_of(job):
    return round((job.not_before - now()).total_seconds(), -1)


def test_retry_queues_a_failed_job_again_with_a_pause_that_doubles(running):
    ended(running)

    first = look(running)
    told, pause, state = str(first.message), pause_of(first), first.state
    second = fail_again(running)
    again = pause_of(second)
    last = fail_again(running)

    assert (state, pause) == ("queued", 10)
    assert told.endswith("Next retry in 10 s (1 of 2).")
    assert (again, second.retried) == (20, 2)
    assert last.state == "failed"


def test_retry_is_not_for_a_job_that_somebody_stopped(running):
    actions.stop(running)
    ended(running, requested="stop")

    look(running)

    assert (running.state, running.retried) == ("stopped", 0)


def test_retry_tells_nobody_of_a_failure_that_is_mended(running, alice):
    ended(running)

    look(running)

    assert not alice.notifications.exists()


def test_retries_count_anew_when_a_person_restores_the_job(running):
    ended(running)
    look(running)
    fail_again(running)
    fail_again(running)

    actions.restore(running)

    assert (running.state, running.retried) == ("queued", 0)
    assert running.not_before is None or running.not_before <= now() + timedelta(seconds=40)


def test_restored_job_does_not_wait_for_the_pause_of_its_retry(running):
    ended(running)
    look(running)
    actions.stop(running)
    had_pause = running.not_before is not None

    actions.restore(running)

    assert (had_pause, running.not_before) == (True, None)
