"""GPUs that the report reserves: through the queue, on a drained node, and where no platform runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import OperationalError
from django.db.models import QuerySet
from django.utils.timezone import now

from aiplatform.cli.gpu_report import reservation
from tests.factories import work
from tests.running import wait_for
from workers.core import kinds
from workers.core.models import Device, Job, Node
from workers.core.runs import RunDir
from workers.core.states import Event, JobState, Reason
from workers.execution import launch, reservations
from workers.jobs import actions, transitions
from workers.planning import planner_input
from workers.planning.planner.plan import plan
from workers.resources.nodes.telemetry.probe import FakeProbe
from workers.scheduling import placing
from workers.supervisor import records

pytestmark = [pytest.mark.django_db(transaction=False)]
GPUS = FakeProbe(2).cards()


@pytest.fixture
def node(db, settings):
    settings.NODE = "node1"
    return work.node(gpus=2, simulated=True)


@pytest.fixture
def folder(settings):
    found = Path(settings.DATA_ROOT) / "gpu-reports"
    found.mkdir(parents=True, exist_ok=True)
    return found


class Platform:
    """Scheduler, worker and agent, one round each time the reservation waits."""

    def __init__(self) -> None:
        self.is_away = False

    def __call__(self, _seconds: float) -> None:
        if self.is_away:
            return
        moment = now()
        for start in plan(planner_input.read(moment, ({}, {}), 3600.0), moment.timestamp()).assignments:
            attempt = placing.place(start.job, start.places)
            launch.start(attempt.pk)
        for job in Job.objects.filter(kind="gpu_reservation", ended_at=None).exclude(state=JobState.QUEUED):
            run = RunDir.for_attempt(job.pk, 1).path
            if job.state == JobState.STARTING and records.read(run / records.SUPERVISOR):
                transitions.move(job.pk, Event.STARTED, attempt=1)
            if ended := records.read(run / records.EXIT):
                event = Event.EXITED_OK if ended["code"] == 0 else Event.EXITED_BAD
                transitions.move(job.pk, event, attempt=1, reason=Reason.DONE)


@pytest.fixture
def platform():
    return Platform()


def reserve(folder, platform, *, most=2, wait_s=60.0, facts=None):
    return reservation.reserve(GPUS, facts or {}, 100.0, folder=folder, max_gpus=most, wait_s=wait_s, pause=platform)


def test_reservation_holds_gpus_by_a_job_and_releases_them(node, cluster, olga, folder, platform):
    work.node("node2", gpus=8)

    with reserve(folder, platform) as held:
        job = Job.objects.get(pk=held.job)
        assert (held.how, [device.index for device in held.devices]) == ("job", [0, 1])
        assert (job.name, job.kind, job.owner, job.state) == ("GPU report", "gpu_reservation", olga, "running")
        assert set(node.devices.filter(kind="gpu").values_list("used", flat=True)) == {8}
        assert held.problem() == ""
        assert job.max_runtime == timedelta(seconds=160)

    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert set(node.devices.filter(kind="gpu").values_list("used", flat=True)) == {0}
    assert list(folder.iterdir()) == []


def test_reservation_takes_no_more_gpus_than_are_free(node, cluster, olga, alice, folder, platform):
    other = work.job(alice, cluster, name="train", state="running", gpus_per_node=1)
    work.hold(other, node.devices.get(kind="gpu", index=0))

    with reserve(folder, platform) as held:
        assert [device.index for device in held.devices] == [1]
    other.refresh_from_db()
    assert other.state == JobState.RUNNING


def test_busy_gpus_are_left_to_their_jobs_which_are_named(node, cluster, olga, alice, folder, platform):
    other = work.job(alice, cluster, name="train", state="running", gpus_per_node=2)
    work.hold(other, *node.devices.filter(kind="gpu"))

    with pytest.raises(reservation.Unavailable, match=rf"used by train \(#{other.pk}\)"), reserve(folder, platform):
        pass
    assert not Job.objects.filter(kind="gpu_reservation").exists()


def test_reservation_that_does_not_begin_in_time_is_withdrawn(node, cluster, olga, folder, platform):
    platform.is_away = True

    with (
        pytest.raises(reservation.Unavailable, match="The reservation, job #1, did not start within 0 s:"),
        reserve(folder, platform, wait_s=0),
    ):
        pass
    assert Job.objects.get(kind="gpu_reservation").is_final
    assert list(folder.iterdir()) == []


def test_reservation_that_an_operator_stops_is_a_problem_of_the_report(node, cluster, olga, folder, platform):
    with reserve(folder, platform) as held:
        actions.stop(Job.objects.get(pk=held.job), by=olga)
        assert f"job #{held.job}, was ended" in held.problem()


def test_report_survives_a_database_that_does_not_answer(node, cluster, olga, folder, platform, monkeypatch):
    def fail(*_given, **_more):
        raise OperationalError("connection refused")

    with reserve(folder, platform) as held:
        monkeypatch.setattr(Job, "refresh_from_db", fail)
        monkeypatch.setattr(QuerySet, "get", fail)
        assert "The database of the platform does not respond, so the" in held.problem()
    monkeypatch.undo()

    assert list(folder.iterdir()) == []
    assert wait_for(lambda: records.read(RunDir.for_attempt(held.job, 1).path / records.EXIT))["code"] == 0


def test_drained_node_is_measured_without_a_job_until_it_takes_work_again(node, cluster, olga, folder, platform):
    Node.objects.update(drain=True, state=Node.State.DRAINING)

    with reserve(folder, platform, most=1) as held:
        assert (held.how, len(held.devices), held.job, held.problem()) == ("drained node", 1, None, "")
        Node.objects.update(drain=False)
        assert "node1 accepts jobs again:" in held.problem()
    assert not Job.objects.exists()


def test_without_platform_gpus_of_other_programs_are_left_alone(node, folder, platform):
    Node.objects.update(heartbeat_at=now() - timedelta(hours=1))

    with reserve(folder, platform, facts={"processes": {"0": ["17 (python)"], "1": []}}) as held:
        assert (held.how, [device.index for device in held.devices]) == ("no platform", [1])
        assert "GPU 0 is used by process 17 (python)" in held.warnings
    busy = {"processes": {"0": ["17 (python)"], "1": ["18 (python)"]}}
    with (
        pytest.raises(reservation.Unavailable, match=r"Stop these processes, or wait until they exit."),
        reserve(folder, platform, facts=busy),
    ):
        pass


def test_platform_without_administrator_or_cluster_says_so(node, folder, platform):
    with pytest.raises(reservation.Unavailable, match="no administrator yet"), reserve(folder, platform):
        pass


def test_reservation_of_a_killed_process_ends_by_itself(node, cluster, olga, folder, platform):
    """The owner is killed without a chance to release anything; the job's program gets the lock and ends."""
    lock = folder / "owner.lock"
    program = (
        "import fcntl, sys, time\n"
        f"file = open({str(lock)!r}, 'w')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\n"
        "time.sleep(600)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout.readline() == "locked\n"
        lock.chmod(0o644)
        job = reservations.submit(node, gpus=1, lock=lock, name="GPU report", max_runtime=timedelta(minutes=5), by=olga)
        wait_for(lambda: platform(0) or reservations.reserved_gpus(job))
        exit_record = RunDir.for_attempt(job.pk, 1).path / records.EXIT
        assert not exit_record.exists()
    finally:
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
        owner.stdout.close()

    assert wait_for(lambda: records.read(exit_record))["code"] == 0
    platform(0)
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert not Device.objects.filter(kind="gpu", used__gt=0).exists()


def test_reservation_whose_owner_is_gone_does_not_start(node, cluster, olga, folder):
    lock = folder / "gone.lock"
    job = reservations.submit(node, gpus=1, lock=lock, name="GPU report", max_runtime=timedelta(minutes=5), by=olga)
    card = node.devices.get(kind="gpu", index=0)
    attempt = placing.place(job.pk, [(node.pk, [(card.pk, 8)])])

    with pytest.raises(reservations.OwnerGone):
        kinds.get("gpu_reservation").prepare(job, attempt, RunDir.for_attempt(job.pk, 1))
