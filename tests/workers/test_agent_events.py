"""The agent looks at what events announce, and now and then at everything, so that a lost event costs little."""

import itertools
import subprocess
import sys
import time
from datetime import timedelta

import pytest

from aiplatform.lib import inotify
from tests.factories import work
from tests.workers.watched import ended, records_of_this_process
from workers.core import agent_wakeup
from workers.core.models import Attempt, Job
from workers.core.states import Desired
from workers.execution.agent.attempt_monitor import AttemptMonitor
from workers.execution.agent.events import Due, Events
from workers.execution.agent.loop import FULL_LOOK_S, Agent
from workers.jobs import actions, transitions
from workers.supervisor import records

ATTEMPT, JOB = 7, 70


@pytest.fixture
def events(settings, tmp_path):
    settings.RUN_DIR = tmp_path / "own"
    opened = Events("node1")
    opened.open(lambda: True)
    yield opened
    opened.close()


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def due_within(events, seconds=20.0):
    events.wait(seconds)
    return events.take_due()


def test_inotify_reports_what_is_renamed_into_a_folder_and_nothing_else(tmp_path):
    files, watched, other = inotify.Inotify(), tmp_path / "watched", tmp_path / "other"
    for folder in (watched, other):
        folder.mkdir()
    watch = files.watch(watched)
    (watched / "log.txt").write_text("a line")
    (watched / "part").write_text("{}")
    (watched / "part").rename(watched / "exit.json")
    (other / "part").write_text("{}")
    (other / "part").rename(other / "exit.json")
    seen = files.read()
    files.forget(watch)
    records.write(watched / "exit.json", {})
    unseen = files.read()
    files.close()

    assert (seen, unseen) == ([(watch, "exit.json")], [])


def test_inotify_refuses_a_folder_that_does_not_exist(tmp_path):
    files = inotify.Inotify()
    with pytest.raises(FileNotFoundError):
        files.watch(tmp_path / "none")
    files.close()


def test_events_report_records_of_supervisors(events, tmp_path):
    watched = events.watch(ATTEMPT, JOB, tmp_path)
    (tmp_path / "log.txt").write_text("a line")
    records.write(tmp_path / "spec.json", {})
    other = due_within(events, 0)
    records.write(tmp_path / records.STATUS, {"state": "paused"})

    assert watched
    assert not other
    assert due_within(events) == Due(attempts={ATTEMPT})


def test_events_report_the_end_of_a_supervisor_once(events, sleeper):
    assert events.follow(ATTEMPT, sleeper.pid)
    before = due_within(events, 0)
    sleeper.kill()

    assert not before
    assert due_within(events) == Due(attempts={ATTEMPT})
    assert not due_within(events, 0)


def test_events_cannot_follow_a_supervisor_that_ended(events, sleeper):
    sleeper.kill()
    sleeper.wait()

    assert not events.follow(ATTEMPT, sleeper.pid)


def test_events_forget_attempts_that_are_over(events, tmp_path, sleeper):
    events.watch(ATTEMPT, JOB, tmp_path)
    events.follow(ATTEMPT, sleeper.pid)
    events.retain({ATTEMPT + 1})
    records.write(tmp_path / records.EXIT, {})
    sleeper.kill()
    sleeper.wait()

    assert not due_within(events, 0)


def test_events_of_a_folder_that_comes_later_cannot_be_received_before(events, tmp_path):
    folder = tmp_path / "run"
    before = events.watch(ATTEMPT, JOB, folder)
    folder.mkdir()

    assert (before, events.watch(ATTEMPT, JOB, folder)) == (False, True)


def test_events_after_an_overflow_are_about_everything(events, monkeypatch, tmp_path):
    events.watch(ATTEMPT, JOB, tmp_path)
    monkeypatch.setattr(events._files, "read", lambda: [(inotify.OVERFLOW, "")])
    records.write(tmp_path / records.STATUS, {})

    assert due_within(events).everything


def test_events_report_attempts_that_are_started_here(events):
    agent_wakeup.notify("node1")
    agent_wakeup.notify("node1")

    assert due_within(events) == Due(starts=True)
    assert not due_within(events, 0)


def test_agents_without_a_folder_of_their_own_hear_of_no_starts(settings, tmp_path):
    (tmp_path / "file").write_text("")
    settings.RUN_DIR = tmp_path / "file"
    events = Events("node1")
    events.open(lambda: True)
    agent_wakeup.notify("node1")

    assert not events.announce_starts
    assert not due_within(events, 0)
    events.close()


@pytest.mark.sockets("a broker of its own")
@pytest.mark.django_db
def test_requests_reach_the_agents_that_run_the_job(
    valkey_url, settings, tmp_path, django_capture_on_commit_callbacks, monkeypatch
):
    settings.RUN_DIR, settings.REDIS_URL, settings.CELERY_BROKER_URL = tmp_path / "own", valkey_url, valkey_url
    agent_wakeup._client.cache_clear()
    over: list[bool] = []
    events = Events("node1")
    events.open(lambda: bool(over))
    events.watch(ATTEMPT, JOB, tmp_path)
    connected = due_within(events)
    with django_capture_on_commit_callbacks(execute=True):
        agent_wakeup.request(JOB + 1)
    other = due_within(events)
    with django_capture_on_commit_callbacks(execute=True):
        agent_wakeup.request(JOB)
    own = due_within(events)
    agent_wakeup._client().client_kill_filter(_type="pubsub")
    again = due_within(events)
    over.append(True)
    agent_wakeup._client().client_kill_filter(_type="pubsub")
    events.close()
    agent_wakeup._client.cache_clear()

    assert connected == Due(everything=True)  # requests of before were not received
    assert not other
    assert own == Due(attempts={ATTEMPT})
    assert again == Due(everything=True)


@pytest.fixture
def agent(settings, tmp_path):
    settings.NODE, settings.RUN_DIR = "node1", tmp_path / "own"
    made = Agent("node1")
    made.events.open(lambda: True)
    yield made
    made.events.close()


@pytest.fixture
def running(alice, cluster, kind, agent, sleeper):
    """A running job with a live supervisor."""
    job = work.job(alice, cluster, state="running")
    work.hold(job, work.node("node1").devices.get(kind="cpu"), share=1)
    supervisor = {"pid": sleeper.pid, "start_ticks": records.start_ticks(sleeper.pid), "boot_id": records.boot_id()}
    records.write(work.run_dir(job).path / records.SUPERVISOR, {**supervisor, "protocol": 4, "child": {"pid": 2}})
    return job


@pytest.fixture
def looked(monkeypatch):
    seen: list[int] = []
    original = AttemptMonitor.check

    def look(self, attempt, **more):
        seen.append(attempt.pk)
        return original(self, attempt, **more)

    monkeypatch.setattr(AttemptMonitor, "check", look)
    return seen


def next_tick(agent):
    due = due_within(agent.events)
    agent.tick(due)


@pytest.mark.django_db
def test_agent_looks_at_a_running_job_only_when_something_is_due(agent, running, looked):
    attempt = Attempt.objects.get(job=running)
    agent.tick()
    for _tick in range(5):
        agent.tick(Due())
    by_event = list(looked)
    agent.tick(Due(starts=True))
    agent.tick(Due(attempts={attempt.pk}))
    agent.tick()

    assert by_event == [attempt.pk]
    assert looked == [attempt.pk] * 3


@pytest.mark.django_db
def test_agent_looks_at_a_starting_job_all_the_time(agent, running, looked):
    Job.objects.filter(pk=running.pk).update(state="starting")
    just_begun = {**records_of_this_process(), "protocol": 4, "started_at": time.time()}
    records.write(work.run_dir(running).path / records.SUPERVISOR, just_begun)
    agent.tick()
    for _tick in range(3):
        agent.tick(Due())

    assert len(looked) == 4


@pytest.mark.django_db
def test_agent_settles_an_end_when_its_record_is_written(agent, running):
    agent.tick()
    ended(running, code=0)
    next_tick(agent)

    running.refresh_from_db()
    assert running.state == "succeeded"


@pytest.mark.django_db
def test_agent_loses_a_job_when_its_supervisor_is_killed(agent, running, sleeper):
    agent.tick()
    sleeper.kill()
    sleeper.wait()
    next_tick(agent)

    running.refresh_from_db()
    assert running.state == "queued"
    assert "supervisor" in str(running.attempts.get().reason)


@pytest.mark.django_db
def test_agent_finds_an_end_that_no_event_announced_at_its_next_full_look(agent, running, monkeypatch):
    agent.tick()
    monkeypatch.setattr(agent.events, "wait", lambda _seconds: None)
    ended(running, code=0)
    agent.tick(Due())
    running.refresh_from_db()
    before = running.state
    agent.tick()
    running.refresh_from_db()

    assert (before, running.state) == ("running", "succeeded")


@pytest.mark.django_db
def test_agent_without_events_looks_all_the_time(agent, running, looked, monkeypatch):
    monkeypatch.setattr(agent.events, "follow", lambda *_asked: False)
    agent.tick()
    agent.tick(Due())

    assert len(looked) == 2


@pytest.mark.django_db
def test_agent_forgets_what_it_knew_of_attempts_that_are_over(agent, running):
    agent.tick()
    ended(running, code=0)
    agent.tick()
    agent.tick(Due())

    assert (agent.watched, agent.attempts, agent._unsettled) == ({}, {}, set())


@pytest.mark.django_db
def test_agent_reports_the_growth_of_a_log_without_a_look_at_the_job(agent, running, looked, monkeypatch):
    reported = []
    monkeypatch.setattr("workers.core.live.nudge", lambda *jobs, log_bytes=None: reported.append((jobs, log_bytes)))
    agent.tick()
    reported.clear()
    looked.clear()
    work.run_dir(running).log.write_text("a line\n")
    agent.tick(Due())

    assert (looked, reported) == ([], [((running.pk,), 7)])


@pytest.mark.django_db
def test_agent_repeats_full_looks_while_events_come(agent, running, monkeypatch):
    """What it does between events ends with a full look every `FULL_LOOK_S`, by its own clock."""
    moment, dues = [0.0], []
    agent.clock = lambda: moment[0]
    monkeypatch.setattr("workers.execution.agent.loop.time.sleep", lambda _seconds: None)
    monkeypatch.setattr(agent, "register", lambda: True)
    monkeypatch.setattr(agent.events, "open", lambda _stopped: None)
    monkeypatch.setattr(agent.events, "close", lambda: None)
    monkeypatch.setattr(agent.events, "take_due", lambda: Due(attempts={1}))
    monkeypatch.setattr(agent, "_check_attempts", lambda due: (dues.append((moment[0], due.everything)), set())[1])

    def wait(seconds):
        moment[0] = round(moment[0] + max(seconds, 0.1), 3)

    monkeypatch.setattr(agent.events, "wait", wait)
    agent.run(lambda: moment[0] > 3 * FULL_LOOK_S)

    full = [at for at, everything in dues if everything]
    assert len(full) == 4
    assert max(later - earlier for earlier, later in itertools.pairwise(full)) <= FULL_LOOK_S + 0.3


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["running", "queued"])
def test_requests_of_running_jobs_are_announced_to_agents(
    alice, cluster, kind, monkeypatch, state, django_capture_on_commit_callbacks
):
    announced = []
    monkeypatch.setattr(agent_wakeup, "_publish", announced.extend)
    job = work.job(alice, cluster, state=state)
    with django_capture_on_commit_callbacks(execute=True):
        transitions.note(job, "note", transitions.NOTHING)

    assert announced == ([job.pk] if state == "running" else [])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("act", "desired"),
    [
        (lambda job, user: actions.stop(job, by=user), Desired.STOP),
        (lambda job, user: actions.force_stop(job, by=user), Desired.STOP),
        (lambda job, user: actions.pause(job, by=user), Desired.PAUSE),
        (lambda job, user: transitions.request_room(job, Desired.EVICT, transitions.NOTHING), Desired.EVICT),
    ],
    ids=["stop", "force", "pause", "evict"],
)
def test_requests_reach_agents_once_committed(
    running, alice, kind, monkeypatch, act, desired, django_capture_on_commit_callbacks
):
    announced = []
    monkeypatch.setattr(agent_wakeup, "_publish", announced.extend)
    Attempt.objects.update(started_at=Attempt.objects.get().assigned_at - timedelta(hours=1))
    with django_capture_on_commit_callbacks(execute=True):
        act(running, alice)

    running.refresh_from_db()
    assert (running.desired, set(announced)) == (desired, {running.pk})


def test_wake_pipe_is_made_again_where_something_else_has_its_name(settings, tmp_path):
    settings.RUN_DIR = tmp_path
    (tmp_path / "agent-node1.wake").write_text("no pipe")
    pipe = agent_wakeup.Pipe("node1")
    agent_wakeup.notify("node1")
    read = pipe.read()
    pipe.close()

    assert read == agent_wakeup.STARTED
