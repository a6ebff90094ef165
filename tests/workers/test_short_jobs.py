"""Many short jobs at once: what each further one costs the database, and that batches end as single ones do."""

from __future__ import annotations

import os

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import work
from tests.running import wait_for
from workers.core.kinds import Launch
from workers.core.models import Attempt, Device, Job, JobEvent
from workers.core.runs import RunDir
from workers.core.states import Event
from workers.execution import launch, results, supervisors
from workers.execution.agent.loop import Agent
from workers.jobs import actions, submission, transitions
from workers.jobs.transitions import Move
from workers.scheduling.loop import Scheduler
from workers.supervisor import records

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
FEW, MANY = 2, 8


@pytest.fixture
def node(db, settings):
    settings.NODE = "node1"
    return work.node("node1")


@pytest.fixture
def put(alice, cluster, node, kind):
    kind.prepare = lambda job, attempt, run: Launch(argv=["true"])

    def some(count, **more):
        asked = {"kind": "command", "name": "short", "cpus": 0.1} | more
        return [submission.submit(owner=alice, cluster=cluster, **asked) for _number in range(count)]

    return some


def end_all(jobs):
    for job in jobs:
        wait_for(lambda job=job: records.read(RunDir.for_attempt(job.pk, 1).path / records.EXIT), 60, "no exit record")


@pytest.fixture
def agent(node):
    made = Agent("node1")
    made.tick()  # what it does every few seconds is done now
    return made


def steps(jobs, agent, scheduler):
    """The statements of each step from the queue to the end, by name of the step."""
    counts = {}

    def count(name, do):
        with CaptureQueriesContext(connection) as caught:
            do()
        counts[name] = len(caught)

    count("placing", scheduler.tick)
    attempts = [attempt.pk for attempt in Attempt.objects.filter(job__in=jobs)]
    count("starting", lambda: launch.start_each(attempts))
    end_all(jobs)
    count("ending", agent.tick)
    count("keeping", lambda: results.publish_each([job.pk for job in jobs]))
    return counts


def test_short_jobs_cost_few_statements_each(put, agent):
    scheduler = Scheduler()
    steps(put(1), agent, scheduler)
    few, many = steps(put(FEW), agent, scheduler), steps(put(MANY), agent, scheduler)

    each = {name: (many[name] - few[name]) / (MANY - FEW) for name in few}
    assert Job.objects.filter(state="succeeded").count() == 1 + FEW + MANY
    assert Device.objects.get(kind="cpu").used == 0
    assert each["placing"] <= 1, each
    assert each["starting"] <= 3, each
    assert each["ending"] <= 2, each
    assert each["keeping"] <= 14, each  # most of them for the notification


def test_batch_writes_the_same_event_log_as_single_moves(put, agent):
    jobs = put(2)
    Scheduler().tick()
    attempts = [Attempt.objects.get(job=job).pk for job in jobs]
    launch.start_each(attempts[:1])
    launch.start(attempts[1])
    end_all(jobs)
    agent.tick()

    logs = [list(JobEvent.objects.filter(job=job).values_list("event", "state", "attempt")) for job in jobs]
    assert logs[0] == logs[1]
    assert [event for event, _state, _attempt in logs[0]] == ["queued", "placed", "started", "exited_ok"]
    rows = Attempt.objects.filter(job__in=jobs).values_list("state", "reason", "exit_code", "allocations__released_at")
    assert {row[:3] for row in rows} == {("succeeded", "done", 0)}
    assert all(row[3] for row in rows)


def test_batch_goes_on_where_one_of_its_jobs_cannot_be_prepared_and_another_was_stopped(put, agent, kind, alice):
    good, bad, stopped = put(3)
    Scheduler().tick()

    def prepare(job, attempt, run):
        if job.pk == bad.pk:
            raise ValueError("Not found")
        return Launch(argv=["true"])

    kind.prepare = prepare
    actions.stop(Job.objects.get(pk=stopped.pk), by=alice)
    launch.start_each(list(Attempt.objects.values_list("pk", flat=True)))
    end_all([good])
    agent.tick()

    states = [Job.objects.get(pk=job.pk).state for job in (good, bad, stopped)]
    assert states == ["succeeded", "failed", "stopped"]
    assert Device.objects.get(kind="cpu").used == 0


def test_program_that_fails_in_a_batch_fails_with_its_code(put, agent, kind):
    job = put(1)[0]
    kind.prepare = lambda job, attempt, run: Launch(argv=["sh", "-c", "exit 3"])
    Scheduler().tick()
    launch.start_each(list(Attempt.objects.values_list("pk", flat=True)))
    end_all([job])
    agent.tick()

    job.refresh_from_db()
    assert (job.state, job.reason, Attempt.objects.get().exit_code) == ("failed", "user_code", 3)


def test_job_that_somebody_stopped_as_it_ended_is_not_settled_as_a_plain_one(put, agent, alice, monkeypatch):
    """The request comes between the look and the lock."""
    job = put(1)[0]
    Scheduler().tick()
    launch.start_each(list(Attempt.objects.values_list("pk", flat=True)))
    end_all([job])
    settle = agent._settle
    monkeypatch.setattr(agent, "_settle", lambda: (actions.stop(Job.objects.get(pk=job.pk), by=alice), settle()))
    agent.tick()

    job.refresh_from_db()
    assert job.state == "succeeded"  # its program had exited with 0 by then
    assert "stop_requested" in JobEvent.objects.filter(job=job).values_list("event", flat=True)


def test_batch_goes_on_where_an_error_that_no_start_expects_meets_one_of_its_jobs(put, agent, monkeypatch):
    bad, good = put(2)
    Scheduler().tick()
    prepare_rank = launch._prepare_rank

    def broken(attempt, *more):
        if attempt.job_id == bad.pk:
            raise RuntimeError("a fault of ours")
        return prepare_rank(attempt, *more)

    monkeypatch.setattr(launch, "_prepare_rank", broken)
    launch.start_each(list(Attempt.objects.values_list("pk", flat=True)))
    end_all([good])
    agent.tick()

    assert [Job.objects.get(pk=job.pk).state for job in (good, bad)] == ["succeeded", "assigned"]


def test_request_for_a_supervisor_that_nobody_waits_for_keeps_no_file_open(put, monkeypatch):
    put(1)
    Scheduler().tick()
    attempts = list(Attempt.objects.values_list("pk", flat=True))
    launch.start_each([])  # opens what stays open
    supervisors._forks._open()
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(launch, "_report_all_started", lambda _started: None)
    monkeypatch.setattr(launch._PreparedRank, "wait", interrupted)

    with pytest.raises(KeyboardInterrupt):
        launch.start_each(attempts)

    end_all([Job.objects.get()])
    assert len(os.listdir("/proc/self/fd")) == before


def interrupted(_rank):
    raise KeyboardInterrupt


def test_moves_of_several_jobs_stand_where_one_is_refused(put):
    first, second = put(2)
    Scheduler().tick()
    transitions.move(second.pk, Event.STARTED, attempt=1)
    locked = list(Job.objects.select_for_update().filter(pk__in=[first.pk, second.pk]).order_by("pk"))

    refused = transitions.move_many([Move(job, Event.STARTED, attempt=1) for job in locked])

    assert list(refused) == [second.pk]
    assert isinstance(refused[second.pk], transitions.IllegalMove)
    assert Job.objects.get(pk=first.pk).state == "running"
