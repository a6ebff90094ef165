"""What the agent makes of the files of one attempt; the supervisor is played by its records."""

import errno
import os
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.utils.timezone import now

from tests.factories import work
from tests.workers.watched import ended, look, records_of_this_process
from workers.core.kinds import Capabilities
from workers.core.models import Attempt, Device, Job
from workers.core.states import Event, IllegalMove
from workers.execution.agent.attempt_monitor import AttemptMonitor
from workers.execution.agent.loop import Agent
from workers.jobs import actions, checkpoints, transitions
from workers.jobs.output import logs, metrics
from workers.supervisor import records

pytestmark = pytest.mark.django_db


@pytest.fixture
def service(alice, cluster, kind):
    """A running job that starts again when it fails, on one card."""
    kind.capabilities_now = Capabilities(suspend=True)
    job = work.job(alice, cluster, state="running", restart="on_failure")
    work.hold(job, work.node(gpus=1).devices.get(kind="gpu"))
    run = work.run_dir(job)
    run.checkpoints.mkdir(parents=True)
    records.write(run.path / records.SUPERVISOR, {"pid": 1, "start_ticks": 0, "boot_id": "gone", "child": {"pid": 2}})
    return job


def test_attempt_monitor_restarts_a_failed_service_after_a_delay(service):
    ended(service)

    look(service)

    assert (service.state, service.desired) == ("queued", "run")
    assert "It restarts in 1 s." in str(service.message)
    assert service.not_before is not None
    assert Device.objects.get(kind="gpu").used == 0


def test_attempt_monitor_starts_no_service_again_whose_program_says_it_would_fail_again(service):
    log = work.run_dir(service).log
    log.write_text(
        "2026-01-01 10:00:00,000 INFO loading\n2026-01-01 10:00:01,000 ERROR The model cannot be loaded: X.\n"
    )
    ended(service, code=os.EX_DATAERR)

    look(service)

    assert (service.state, service.not_before) == ("failed", None)
    assert str(service.message) == "The model cannot be loaded: X. The endpoint is not restarted."
    assert Device.objects.get(kind="gpu").used == 0


def test_attempt_monitor_says_that_the_disk_was_full_when_a_program_failed(alice, cluster):
    job = work.job(alice, cluster, state="running")
    work.hold(job, work.node().devices.get(kind="cpu"), share=1)
    records.write(work.run_dir(job).path / records.SUPERVISOR, {"pid": 1, "start_ticks": 0, "boot_id": "gone"})
    ended(job, code=1, disk_full=True)

    look(job)

    assert job.state == "failed"
    assert str(job.message) == (
        "The disk was full while the job ran. The program exited with code 1. See its log. Free disk "
        "space and start it again."
    )


def test_attempt_monitor_gives_up_no_start_while_the_disk_is_full(alice, cluster, monkeypatch):
    job = work.job(alice, cluster, state="assigned")
    work.hold(job, work.node().devices.get(kind="cpu"), share=1)
    monkeypatch.setattr("aiplatform.lib.disk.has_no_room", lambda _path: True)
    seen = Attempt.objects.select_related("job").get(job=job)
    monitor = AttemptMonitor(seen)
    monitor.seen -= 1000

    monitor.check(seen)

    job.refresh_from_db()
    assert job.state == "assigned"


@pytest.mark.parametrize("code", [1, 75])
def test_l02_attempt_monitor_keeps_a_stop_that_meets_the_natural_end(service, code):
    ended(service, code=code)
    stale = Attempt.objects.select_related("job").get(job=service)
    actions.stop(service)

    AttemptMonitor(stale).check(stale)

    service.refresh_from_db()
    assert (service.state, service.reason) == ("stopped", "owner")
    assert Device.objects.get(kind="gpu").used == 0


@pytest.mark.parametrize("wish", ["none", "stop"])
def test_f32_attempt_monitor_neither_trusts_nor_harms_a_reused_process_id(service, wish):
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        remembered = {"pid": stranger.pid, "start_ticks": records.start_ticks(stranger.pid) - 100}
        claim = {**remembered, "boot_id": records.boot_id(), "child": remembered}
        records.write(work.run_dir(service).path / records.SUPERVISOR, claim)
        if wish == "stop":
            actions.stop(service)

        look(service)

        attempt = service.attempts.get(number=1)
        assert (attempt.state, attempt.reason) == ("lost", "supervisor_lost")
        assert service.state == ("queued" if wish == "none" else "stopped")  # not taken for running
        assert stranger.poll() is None
    finally:
        stranger.communicate(b"\n", timeout=30)
    assert stranger.returncode == 0  # it ended by itself


def test_newest_checkpoint_takes_no_link(service, tmp_path):
    own = work.run_dir(service).checkpoints
    for folder in (own / "step-000001", tmp_path / "of-another"):
        folder.mkdir()
        (folder / "meta.json").write_text("{}")
    (own / "step-000002").symlink_to(tmp_path / "of-another")
    (own / "step-000003").mkdir()
    (own / "step-000003/meta.json").symlink_to(tmp_path / "of-another/meta.json")

    assert checkpoints.newest_checkpoint(service) == own / "step-000001"


def test_agent_tick_lets_a_troublesome_job_cost_the_others_nothing(service, alice, cluster, settings, monkeypatch):
    settings.NODE = "node1"
    other = work.job(alice, cluster, state="running")
    work.hold(other, Device.objects.get(kind="cpu"), share=1)
    records.write(work.run_dir(other).path / records.SUPERVISOR, {"pid": 1, "start_ticks": 0, "boot_id": "gone"})
    ended(service, signal="SIGNONSENSE")
    ended(other, code=0)
    agent = Agent("node1")
    beaten: list[bool] = []
    monkeypatch.setattr(agent, "beat", lambda: beaten.append(True))

    agent.tick()

    assert Job.objects.get(pk=other.pk).state == "succeeded"
    assert beaten == [True]


def test_agent_takes_in_figures_of_jobs_in_turn_and_not_for_ever(service, alice, cluster, settings, monkeypatch):
    settings.NODE = "node1"
    for _ in range(2):
        work.hold(work.job(alice, cluster, state="running"), Device.objects.get(kind="cpu"), share=1)
    time_of_day = [0.0]
    agent, rounds = Agent("node1", clock=lambda: time_of_day[0]), []

    def slow(attempt):
        rounds[-1].append(attempt.pk)
        time_of_day[0] += 4.0

    monkeypatch.setattr(agent, "_check_attempt", lambda attempt: None)
    monkeypatch.setattr(metrics, "ingest", slow)
    for _round in range(3):
        rounds.append([])
        agent.tick()
        time_of_day[0] += 1.0

    first, second, third = sorted(Attempt.objects.values_list("pk", flat=True))
    assert rounds == [[first, second], [third, first], [second, third]]


def test_agent_whose_disk_is_full_still_looks_at_its_cards(service, settings, monkeypatch):
    settings.NODE = "node1"
    agent, looked = Agent("node1"), []
    sample = type("Sample", (), {"node": {"cards": []}, "readings": {}, "jobs": {service.attempts.get().pk: {"a": 1}}})
    monkeypatch.setattr(agent.sampler, "sample", lambda _watched: sample)
    monkeypatch.setattr(metrics, "record_system", full_disk)
    monkeypatch.setattr(agent.sharing, "check", lambda *_asked: looked.append(True))

    agent.beat()

    assert looked == [True]


def full_disk(*_args, **_named):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_f40_job_files_that_are_pipes_hold_up_nobody(service):
    run = work.run_dir(service)
    os.mkfifo(run.metrics)
    os.mkfifo(run.log)

    assert metrics.ingest(service.attempts.get()) == 0
    assert logs.piece(service).text == ""


def test_l02_job_stop_that_met_the_placing_is_a_request_the_agent_sees(alice, cluster, kind):
    job = work.job(alice, cluster, state="assigned")

    transitions.move(job.pk, Event.STOP_REQUESTED)

    job.refresh_from_db()
    assert (job.state, job.desired) == ("stopping", "stop")


def test_job_restore_is_refused_for_kinds_that_cannot_go_on(service, kind):
    kind.capabilities_now = Capabilities(restore=False)
    transitions.move(service.pk, Event.EXITED_BAD, attempt=1)

    with pytest.raises(IllegalMove, match="no checkpoint"):
        actions.restore(service)


def test_job_release_says_for_whom_and_queues_at_the_old_place(service):
    run = work.run_dir(service)
    records.write(run.path / records.SUPERVISOR, records_of_this_process())
    began = service.queued_at
    age(service)

    actions.release(service.pk, for_job=77)
    look(service)

    assert (service.state, str(service.message)) == ("preempting", "Preempted by job 77, which is urgent.")
    assert records.read_request(run.path) == "suspend"
    assert service.makes_room_for == 77

    (run.checkpoints / "step-000005").mkdir()
    (run.checkpoints / "step-000005/meta.json").write_text("{}")
    ended(service, code=75, requested="suspend")
    look(service)

    assert (service.state, service.desired, service.queued_at) == ("queued", "run", began)
    assert service.resume_from.endswith("step-000005")
    assert service.makes_room_for is None
    assert str(service.message) == "Preempted; continues from its checkpoint."


def test_job_release_of_a_paused_job_comes_back_paused(service):
    transitions.move(service.pk, Event.PAUSED, attempt=1)
    age(service)
    actions.release(service.pk, for_job=77)
    transitions.move(service.pk, Event.RELEASE_REQUESTED, attempt=1)
    ended(service, code=None, signal="SIGKILL", requested="suspend", killed=True)

    look(service)

    assert (service.state, service.desired) == ("queued", "pause")
    assert str(service.message) == "Did not exit in time and was killed; it starts over, because it had no checkpoint."


def test_job_release_is_refused_before_its_time_or_twice(service):
    with pytest.raises(IllegalMove, match="long enough"):
        actions.release(service.pk, for_job=77)
    age(service)
    actions.release(service.pk, for_job=77)

    with pytest.raises(IllegalMove, match="running jobs"):
        actions.release(service.pk, for_job=78)
    with pytest.raises(IllegalMove, match=r"The job is being preempted."):
        actions.pause(service)


def age(job):
    job.attempts.update(started_at=now() - timedelta(hours=1))


def test_job_release_over_memory_keeps_the_newest_checkpoint(service):
    Job.objects.filter(pk=service.pk).update(state="preempting", desired="release")
    newest = work.run_dir(service).checkpoints / "step-7"
    newest.mkdir()
    (newest / "meta.json").write_text("{}")
    ended(service, limit="memory", code=None, signal="SIGKILL")

    look(service)

    assert (service.state, service.resume_from) == ("queued", str(newest))


def test_job_pause_does_not_count_as_idle_time(service):
    Job.objects.filter(pk=service.pk).update(state="paused")
    Attempt.objects.filter(job=service).update(busy_at=now() - timedelta(hours=10))

    transitions.move(service.pk, Event.RESUMED)

    assert now() - Attempt.objects.get(job=service).busy_at < timedelta(minutes=1)


@pytest.mark.parametrize(("begun_s", "state"), [(0, "assigned"), (3, "running")])
def test_attempt_monitor_says_that_a_job_began_where_its_starter_did_not(alice, cluster, kind, begun_s, state):
    """The starter says so itself a moment later, unless it was killed before it could."""
    job = work.job(alice, cluster, state="assigned")
    work.hold(job, work.node(gpus=1).devices.get(kind="gpu"))
    run = work.run_dir(job)
    run.path.mkdir(parents=True, exist_ok=True)
    me = {"pid": os.getpid(), "start_ticks": records.start_ticks(os.getpid()), "boot_id": records.boot_id()}
    records.write(
        run.path / records.SUPERVISOR, {**me, "started_at": time.time() - begun_s, "protocol": 2, "child": {"pid": 2}}
    )

    assert look(job).state == state


def test_agent_leaves_most_of_many_starts_to_their_worker(alice, cluster, kind, settings, monkeypatch):
    settings.NODE = "node1"
    card = work.node(gpus=1).devices.get(kind="gpu")
    for _ in range(5):
        job = work.job(alice, cluster, state="assigned")
        work.hold(job, card, share=1)
        Attempt.objects.filter(job=job).update(assigned_at=now() - timedelta(seconds=30))
    agent, begun = Agent("node1"), []
    monkeypatch.setattr(agent, "_start_rank", lambda rank: begun.append(rank) or True)

    seen = []
    for _look in range(4):
        agent.tick()
        seen.append(len(begun))

    assert seen == [2, 4, 5, 5]
