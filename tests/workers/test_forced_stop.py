"""A forced stop: who may, what it asks of the supervisor, and what is said where nobody is there to do it."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from django.utils.timezone import now

from accounts.models import AuditEntry
from tests.factories import work
from tests.running import wait_for
from tests.workers.supervised import BEST, PYTHON, Run
from workers.core.models import Attempt, Job, Node
from workers.core.states import Event, IllegalMove
from workers.execution.agent import overdue
from workers.execution.agent.attempt_monitor import AttemptMonitor
from workers.execution.agent.loop import Agent
from workers.jobs import actions, transitions
from workers.resources.monitoring import rules
from workers.resources.monitoring.snapshot_reader import SnapshotReader
from workers.resources.nodes import unkillable
from workers.supervisor import processes, records

pytestmark = pytest.mark.django_db
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"


@pytest.fixture
def supervisor():
    """A process that looks after a job and hears nothing."""
    process = subprocess.Popen([sys.executable, "-S", "-c", STUBBORN], stdout=subprocess.PIPE)
    with process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.kill()


@pytest.fixture
def running(alice, cluster, kind, settings, supervisor):
    """Alice's job on node1, under that supervisor."""
    settings.NODE = "node1"
    job = work.job(alice, cluster, state="running")
    work.hold(job, work.node(gpus=1).devices.get(kind="gpu"))
    claim = {"pid": supervisor.pid, "start_ticks": records.start_ticks(supervisor.pid), "boot_id": records.boot_id()}
    run = work.run_dir(job)
    records.write(run.path / records.SUPERVISOR, {**claim, "protocol": records.PROTOCOL, "child": claim})
    return job


def look(job, monitor=None):
    seen = Attempt.objects.select_related("job").get(job=job, ended_at=None)
    monitor = monitor or AttemptMonitor(seen)
    monitor.check(seen)
    job.refresh_from_db()
    return monitor


def word(job) -> str:
    return records.read_request(work.run_dir(job).path)


def force(client, job):
    return client.post(f"/api/v1/jobs/{job.pk}/force-stop/")


def test_forced_stop_goes_beyond_a_stop_that_is_under_way(as_olga, as_alice, running):
    as_alice.post(f"/api/v1/jobs/{running.pk}/stop/")
    look(running)
    before = (running.state, word(running))
    again = as_olga.post(f"/api/v1/jobs/{running.pk}/stop/")

    answer = force(as_olga, running)
    look(running)

    assert before == ("stopping", "stop")
    assert again.status_code == 409
    assert (answer.status_code, answer.json()["sentence"]) == (202, "Force stop requested.")
    assert (running.state, running.reason, word(running)) == ("stopping", "owner", "kill")
    assert running.events.filter(event="force_requested", by__username="olga").exists()
    [line] = AuditEntry.objects.filter(verb="job_forced")
    assert line.actor == "olga"


def test_forced_stop_is_for_those_in_charge_of_the_cluster(as_alice, as_bob, bob, cluster, running):
    codes = [force(as_alice, running).status_code, force(as_bob, running).status_code]
    running.refresh_from_db()
    untouched = (running.desired, running.forced_at)
    cluster.memberships.update_or_create(user=bob, defaults={"administers": True})

    answer = force(as_bob, running)
    running.refresh_from_db()

    assert codes == [403, 404]
    assert untouched == ("run", None)
    assert answer.status_code == 202
    assert (running.desired, running.reason) == ("stop", "operator")
    assert running.forced_at is not None


def test_forced_stop_says_that_a_silent_machine_can_do_nothing_yet(as_olga, running):
    Node.objects.update(heartbeat_at=now() - timedelta(seconds=75))

    said = force(as_olga, running).json()["sentence"]

    assert said.startswith("Force stop requested, but node1 has not responded for 75 s.")


def test_forced_stop_of_what_waits_ends_it_and_of_what_ended_is_refused(olga, alice, cluster, kind):
    waiting, over = work.job(alice, cluster), work.job(alice, cluster, state="failed")

    actions.force_stop(waiting, by=olga)

    assert waiting.state == "stopped"
    with pytest.raises(IllegalMove):
        actions.force_stop(over, by=olga)


def test_forced_stop_is_forgotten_by_the_next_attempt(olga, running):
    actions.force_stop(running, by=olga)
    transitions.move(running.pk, Event.STOP_REQUESTED)
    transitions.move(running.pk, Event.EXITED_BAD)
    transitions.move(running.pk, Event.RESTORED)

    job = transitions.move(running.pk, Event.PLACED)

    assert (job.forced_at, job.desired) == (None, "run")


def test_job_page_offers_the_forced_stop_to_operators_while_it_lives(as_olga, as_alice, running):
    pages = [client.get(f"/jobs/{running.pk}/").content.decode() for client in (as_olga, as_alice)]
    refused = as_alice.post(f"/jobs/{running.pk}/do/force/")

    answer = as_olga.post(f"/jobs/{running.pk}/do/force/", headers={"HX-Request": "true"})
    running.refresh_from_db()

    assert ["job-force" in page for page in pages] == [True, False]
    assert "immediately, without saving?" in pages[0]
    assert refused.status_code == 404
    assert answer.status_code == 200
    assert running.forced_at is not None


def test_agent_lets_a_supervisor_go_on_that_its_job_stopped(olga, running, supervisor):
    supervisor.send_signal(signal.SIGSTOP)
    wait_for(lambda: processes.state(supervisor.pid) == "T")
    actions.stop(running, by=olga)

    look(running)

    wait_for(lambda: processes.state(supervisor.pid) == "S")


def test_agent_ends_a_supervisor_that_does_not_end_its_job(olga, running, supervisor, monkeypatch):
    monkeypatch.setattr(overdue, "SLACK_S", -overdue.REAP_S)
    actions.force_stop(running, by=olga)

    monitor = look(running)
    look(running, monitor)
    supervisor.wait(30)
    look(running, monitor)

    assert (running.state, running.forced_at is not None) == ("stopped", True)
    assert running.attempts.get().ended_at is not None


def test_agent_gives_a_stop_its_grace(olga, running, supervisor, monkeypatch):
    monkeypatch.setattr(overdue, "SLACK_S", -overdue.REAP_S)
    records.write(work.run_dir(running).path / records.LAUNCH, {"stop_grace_s": 300.0})
    actions.stop(running, by=olga)

    monitor = look(running)
    look(running, monitor)

    assert supervisor.poll() is None
    assert running.state == "stopping"


def test_agent_keeps_a_machine_with_unkillable_processes_from_new_work_and_raises_an_alarm(running, supervisor):
    record = {"code": None, "signal": "SIGKILL", "requested": "stop", "unkillable": [supervisor.pid]}
    records.write(work.run_dir(running).path / records.EXIT, record)

    look(running)
    node = Node.objects.get()
    alarms = rules.breaches("unkillable", SnapshotReader().read(now()), 0)

    assert running.state == "stopped"
    assert (node.drain, node.state) == (True, "draining")
    assert str(supervisor.pid) in str(node.events.get(event="unkillable").message)
    assert [(breach.subject, breach.value) for breach in alarms] == [("node1", 1.0)]


def test_agent_strikes_an_unkillable_process_that_died_after_all(running, supervisor):
    unkillable.report("node1", running, [supervisor.pid])
    supervisor.kill()
    supervisor.wait()

    Agent("node1").beat()

    assert Node.objects.get().facts[unkillable.FACT] == []
    assert Node.objects.get().drain  # an operator lets it take work again


def test_agent_reports_what_nothing_ends_and_lets_the_job_end(olga, running, supervisor, monkeypatch):
    monkeypatch.setattr(overdue, "SLACK_S", -overdue.REAP_S)
    monkeypatch.setattr(overdue, "REAP_S", 0.0)
    monkeypatch.setattr(overdue, "SLACK_S", 0.0)
    monkeypatch.setattr(overdue.processes, "send", lambda *_: None)
    actions.force_stop(running, by=olga)
    monitor = look(running)

    wait_for(lambda: look(running, monitor) and Job.objects.get(pk=running.pk).is_final, pause_s=0.01)

    assert running.state == "stopped"
    assert Node.objects.get().drain


@pytest.mark.skipif(BEST < 2, reason="bubblewrap does not work on this machine")
def test_forced_stop_ends_a_real_job_whose_sandbox_stands_still(olga, alice, cluster, kind, settings, request):
    settings.NODE = "node1"
    job = work.job(alice, cluster, state="running")
    work.hold(job, card := work.node(gpus=1).devices.get(kind="gpu"))
    real = Run(work.run_dir(job).path, 2, [PYTHON, "-S", "-c", STUBBORN], stop_grace_s=1000)
    assert real.start() == 0
    request.addfinalizer(lambda: real.wish("kill"))
    outer = real.supervisor["child"]["pid"]
    [inner] = wait_for(lambda: [pid for pid in processes.children(outer) if processes.children(pid)])
    processes.send([inner, outer], signal.SIGSTOP)
    actions.stop(job, by=alice)
    monitor = look(job)
    under_way = job.state

    actions.force_stop(job, by=olga)
    wait_for(lambda: look(job, monitor) and job.is_final, pause_s=0.1)

    card.refresh_from_db()
    assert (under_way, job.state, card.used) == ("stopping", "stopped", 0)
    assert real.programs() == []
