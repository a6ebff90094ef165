"""A job that completed is restored: its result stays until a later attempt has a better one."""

from __future__ import annotations

import pytest

from accounts.models import Notification
from tests.factories import work
from workers.core.kinds import Capabilities
from workers.core.states import Event, Reason
from workers.execution import results
from workers.jobs import actions, announcing, transitions

pytestmark = pytest.mark.django_db


@pytest.fixture
def completed(alice, cluster, kind):
    """A job that completed in its first attempt and waits again."""
    kind.capabilities_now = Capabilities(restore=True)
    job = work.job(alice, cluster, name="own", state="finished_early")
    actions.restore(job)
    return job


def begun(job):
    """Its next attempt runs."""
    for event in (Event.PLACED, Event.LAUNCHED, Event.STARTED):
        transitions.move(job.pk, event)
    job.refresh_from_db()
    return job


def failed(job):
    return transitions.move(job.pk, Event.EXITED_BAD, attempt=job.attempt_number, reason=Reason.USER_CODE, exit_code=1)


def test_result_stays_where_the_next_attempt_fails(completed, as_alice):
    job = failed(begun(completed))

    page = as_alice.get(f"/jobs/{job.pk}/").content.decode()
    results.publish(job.pk)

    assert job.state == "finished_early"
    assert str(job.message) == "The earlier result is kept; attempt 2 failed. The program failed"
    assert "The earlier result is kept; attempt" in page
    assert list(job.attempts.order_by("number").values_list("state", "reason")) == [
        ("finished_early", ""), ("failed", "user_code"),
    ]  # fmt: skip
    assert [(row.kind, str(row.title)) for row in Notification.objects.all()] == [
        ("failed", "Command “own”: the new attempt failed; the earlier result is kept")
    ]


def test_result_stays_where_the_next_attempt_is_stopped_even_before_it_begins(completed, alice):
    assert actions.stop(completed, by=alice).state == "finished_early"

    actions.restore(completed)
    begun(completed)
    actions.stop(completed, by=alice)
    for event in (Event.STOP_REQUESTED, Event.EXITED_BAD):
        job = transitions.move(completed.pk, event, reason=Reason.OWNER)
    announcing.ended(job, job.attempts.get(number=2))

    assert (job.state, job.attempts.get(number=2).state) == ("finished_early", "stopped")
    assert not Notification.objects.exists()  # its owner stopped it


def test_result_gives_way_to_a_better_one(completed):
    begun(completed)

    job = transitions.move(completed.pk, Event.EXITED_OK, attempt=2, reason=Reason.DONE, exit_code=0)

    assert job.state == "succeeded"


def test_job_that_never_completed_fails(alice, cluster, kind):
    kind.capabilities_now = Capabilities(restore=True)
    job = work.job(alice, cluster, state="failed")
    actions.restore(job)

    assert failed(begun(job)).state == "failed"


def test_owner_is_notified_of_a_usual_end_by_its_title_alone(completed):
    begun(completed)

    job = transitions.move(completed.pk, Event.EXITED_OK, attempt=2, reason=Reason.DONE, exit_code=0)
    announcing.ended(job, job.attempts.get(number=2))

    (row,) = Notification.objects.all()
    assert (row.kind, str(row.title), str(row.text)) == ("finished", "Command “own” completed", "")
