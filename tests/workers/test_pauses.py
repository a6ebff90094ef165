"""A pause has an end: what can save gives its cards back and goes on later, the rest is stopped; both are warned."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.timezone import now

from accounts.models import Notification
from tests.factories import work
from tests.workers.watched import ended, look, records_of_this_process
from workers.core.kinds import Capabilities
from workers.core.models import Attempt, Device, Job, JobEvent, VirtualCluster
from workers.core.states import Event, IllegalMove
from workers.execution import evictions
from workers.jobs import actions, buttons, transitions
from workers.resources.clusters import clusters
from workers.scheduling import overdue
from workers.supervisor import records

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def job(alice, cluster, kind):
    """A running job on one card that can save."""
    kind.capabilities_now = Capabilities(suspend=True)
    job = work.job(alice, cluster, name="long", state="running")
    work.hold(job, work.node(gpus=1).devices.get(kind="gpu"))
    run = work.run_dir(job)
    run.checkpoints.mkdir(parents=True)
    records.write(run.path / records.SUPERVISOR, records_of_this_process())
    return job


@pytest.fixture
def paused(job):
    """The same, paused now."""
    actions.pause(job)
    transitions.move(job.pk, Event.PAUSED, attempt=1)
    job.refresh_from_db()
    return job


def saved(job):
    """The job leaves a checkpoint and ends, as it was requested to."""
    checkpoint = work.run_dir(job).checkpoints / "step-000005"
    checkpoint.mkdir()
    (checkpoint / "meta.json").write_text("{}")
    ended(job, code=75, requested="suspend")
    return look(job)


def test_pause_that_reaches_the_limit_gives_the_cards_back_after_a_warning(paused, alice):
    begun = paused.events.get(event="paused").at

    early = overdue.long_paused(begun + 22 * HOUR)
    warned = overdue.long_paused(begun + 23 * HOUR)
    again = overdue.long_paused(begun + 23.5 * HOUR)
    told = Job.objects.get(pk=paused.pk).message
    over = overdue.long_paused(begun + 24.1 * HOUR)

    assert (early, warned, again, over) == ([], [paused.pk], [], [paused.pk])
    assert str(told) == (
        "The job has been paused for almost 24 h, the limit of its cluster. Continue it; otherwise it "
        "saves a checkpoint, releases its GPUs and resumes when you continue it later."
    )
    assert str(Notification.objects.get(user=alice, kind="idle").title) == "“long” is paused and holds its GPUs"
    look(paused)
    assert (paused.state, records.read_request(work.run_dir(paused).path)) == ("preempting", "suspend")
    saved(paused)
    assert (paused.state, paused.desired, paused.reason) == ("queued", "pause", "pause_over")
    assert Device.objects.get(kind="gpu").used == 0
    actions.resume(paused)
    assert (paused.state, paused.desired, paused.resume_from[-11:]) == ("queued", "run", "step-000005")


def test_pause_of_a_job_that_cannot_save_ends_with_a_reason(paused, kind):
    kind.capabilities_now = Capabilities(suspend=False)
    begun = paused.events.get(event="paused").at

    overdue.long_paused(begun + 23 * HOUR)
    told = str(Job.objects.get(pk=paused.pk).message)
    overdue.long_paused(begun + 25 * HOUR)

    paused.refresh_from_db()
    assert told.endswith("Continue it, otherwise it is stopped.")
    assert (paused.desired, paused.reason) == ("stop", "pause_over")
    assert str(paused.message) == "The job was paused for 24 h, the limit of its cluster."


def test_pause_is_measured_anew_after_it_was_continued(paused):
    first = paused.events.get(event="paused").at
    overdue.long_paused(first + 23 * HOUR)
    transitions.move(paused.pk, Event.RESUMED, attempt=1)
    transitions.move(paused.pk, Event.PAUSED, attempt=1)
    JobEvent.objects.filter(pk=paused.events.filter(event="paused").latest("pk").pk).update(at=first + 30 * HOUR)

    assert overdue.long_paused(first + 31 * HOUR) == []
    assert overdue.long_paused(first + 53.5 * HOUR) == [paused.pk]  # warned again


def test_pause_limit_of_a_cluster_is_its_own_and_a_shorter_one_warns_first(paused, cluster, olga):
    begun = paused.events.get(event="paused").at
    clusters.save(cluster, name=cluster.name, max_pause=None, by=olga)
    without = overdue.long_paused(begun + 1000 * HOUR)
    clusters.save(cluster, name=cluster.name, max_pause=2 * HOUR, by=olga)

    late = begun + 10 * HOUR
    JobEvent.objects.filter(event="paused").update(at=begun)
    warned = overdue.long_paused(late)
    JobEvent.objects.filter(event="pause_nearly_over").update(at=late)
    soon = overdue.long_paused(late + timedelta(minutes=5))
    over = overdue.long_paused(late + timedelta(minutes=13))

    assert (without, warned, soon, over) == ([], [paused.pk], [], [paused.pk])


def test_pause_limit_is_shown_changed_and_recorded_by_page_and_api(as_olga, cluster):
    form = as_olga.get(f"/clusters/{cluster.pk}/edit/").content.decode()
    sent = as_olga.patch(f"/api/v1/clusters/{cluster.pk}/", {"max_pause_s": 7200}, content_type="application/json")
    page = as_olga.get(f"/clusters/{cluster.pk}/").content.decode()

    assert 'name="max_pause_hours" value="24"' in form
    assert sent.json()["max_pause_s"] == 7200
    assert VirtualCluster.objects.get(pk=cluster.pk).max_pause == 2 * HOUR
    assert "Maximum pause" in page


def test_job_gives_its_cards_back_on_request_running_or_paused(as_alice, job):
    page = as_alice.get(f"/jobs/{job.pk}/").content.decode()
    as_alice.post(f"/jobs/{job.pk}/do/suspend/")
    look(job)
    saved(job)

    assert 'id="job-suspend"' in page
    assert (job.state, job.desired, job.reason) == ("queued", "pause", "suspended")
    assert (
        str(job.message) == "Saved a checkpoint and released its GPUs. Continue the job to resume from the checkpoint."
    )
    assert not Notification.objects.exists()  # its owner wanted it
    assert Device.objects.get(kind="gpu").used == 0


def test_job_gives_its_cards_back_from_a_pause(as_alice, paused):
    answer = as_alice.post(f"/api/v1/jobs/{paused.pk}/suspend/")
    look(paused)
    saved(paused)

    assert answer.status_code == 202
    assert (paused.state, paused.desired) == ("queued", "pause")


def test_job_that_cannot_save_has_no_such_button(as_alice, job, kind):
    kind.capabilities_now = Capabilities(suspend=False)

    page = as_alice.get(f"/jobs/{job.pk}/").content.decode()

    assert 'id="job-suspend"' not in page
    with pytest.raises(IllegalMove, match="writes no checkpoints"):
        actions.suspend(job)
    assert [button.verb for button in buttons.shown(job)] == ["pause", "finish", "stop"]


def test_job_makes_room_for_a_guarantee_without_a_minimum_run_time(job, alice, cluster):
    Attempt.objects.filter(job=job).update(started_at=now(), assigned_at=now())

    with pytest.raises(IllegalMove, match="long enough"):
        actions.release(job.pk, for_job=9, why="urgent")
    with pytest.raises(
        IllegalMove, match=r"The node has not enough free memory for the state of the job."
    ):  # of the machine, not of run time
        evictions.evict(job.pk, for_job=9, why="guarantee")

    assert actions.release(job.pk, for_job=9, why="guarantee").desired == "release"
