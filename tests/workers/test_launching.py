"""Starting attempts with the real supervisor: what runs, what is refused, what happens twice."""

import json
import sys
import time

import pytest

from aiplatform import env
from tests.cases import case_table
from tests.running import printed
from tests.workers.launched import ended, node, placed
from workers.core.kinds import Capabilities, Launch
from workers.core.models import Allocation, Attempt
from workers.core.runs import RunDir
from workers.core.states import Event
from workers.execution import launch, tickets
from workers.execution.agent import verdicts
from workers.jobs import actions, transitions
from workers.supervisor import tiers

__all__ = ["node", "placed"]  # fixtures

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

SAY = "import json, os; print(json.dumps({k: v for k, v in os.environ.items()})); print(os.getcwd())"


def test_f05_launching_runs_a_program_with_the_contract_and_nothing_of_ours(placed, monkeypatch):
    monkeypatch.setenv("AIP_SECRET_KEY", "canary")
    job, attempt = placed([sys.executable, "-c", SAY], env={"AIP_HINT": "x"}, ports=1)

    launch.start(attempt.pk)
    record = ended(job)
    job.refresh_from_db()

    run = RunDir.for_attempt(job.pk, 1)
    said, cwd = printed(run.log).splitlines()
    environ = json.loads(said)
    assert (job.state, record["code"], cwd) == ("running", 0, str(run.code))
    assert (environ["AIP_JOB_ID"], environ["AIP_ATTEMPT"], environ["AIP_HINT"]) == (str(job.pk), "1", "x")
    assert environ["AIP_METRICS_FILE"] == str(run.metrics)
    assert environ["CUDA_VISIBLE_DEVICES"] == ""  # simulated
    assert int(environ["AIP_PORT"]) == Allocation.objects.get().port
    assert "canary" not in said


def test_launching_twice_starts_once(placed):
    job, attempt = placed([sys.executable, "-c", "print('once')"])

    for _ in range(3):
        launch.start(attempt.pk)
    ended(job)

    assert printed(RunDir.for_attempt(job.pk, 1).log) == "once\n"


def test_launching_says_nothing_of_a_start_that_the_agent_reported_first(placed, caplog):
    job, attempt = placed([sys.executable, "-c", "print('once')"])
    as_read_before = Attempt.objects.select_related("job").get(pk=attempt.pk)
    launch.start(attempt.pk)
    ended(job)

    with caplog.at_level("INFO"):
        launch.report_started(as_read_before, 0, tickets.rank_dir(RunDir.for_attempt(job.pk, 1), 0))

    assert caplog.records == []


def test_launching_a_kind_that_refuses_ends_the_job_in_its_words(placed, kind, node):
    job, attempt = placed(["true"])

    def refuse(job, attempt, run):
        raise transitions.IllegalMove("The dataset is gone.")

    kind.prepare = refuse
    launch.start(attempt.pk)
    job.refresh_from_db()

    assert (job.state, job.reason, str(job.message)) == ("failed", "launch_failed", "The dataset is gone.")
    assert set(node.devices.values_list("used", flat=True)) == {0}


def test_launching_never_begins_a_job_stopped_before_its_start(placed, alice):
    job, attempt = placed([sys.executable, "-c", "print('no')"])
    actions.stop(job, by=alice)

    launch.start(attempt.pk)
    job.refresh_from_db()

    assert (job.state, job.reason) == ("stopped", "owner")
    assert not RunDir.for_attempt(job.pk, 1).log.exists()


def test_launching_leaves_another_nodes_work_alone(placed, settings):
    job, attempt = placed(["true"])
    settings.NODE = "node2"

    launch.start(attempt.pk)
    job.refresh_from_db()

    assert job.state == "assigned"
    assert not RunDir.for_attempt(job.pk, 1).path.exists()


def test_tickets_words_use_the_control_file_only_for_what_suspends():
    assert tickets.words(Capabilities(suspend=True)) == ["pause", "suspend", "finish"]
    assert tickets.words(Capabilities(suspend=False, finish=True)) == []


@case_table(
    ("state", "record", "events", "reason"),
    [
        ("running", {"code": 0}, [Event.EXITED_OK], "done"),
        ("running", {"code": 3}, [Event.EXITED_BAD], "user_code"),
        ("running", {"code": None, "signal": "SIGSEGV"}, [Event.EXITED_BAD], "user_code"),
        ("running", {"code": None, "signal": "SIGKILL", "oom": True}, [Event.EXITED_BAD], "out_of_memory"),
        ("running", {"code": 75}, [Event.SUSPENDED], ""),
        (
            "running",
            {"code": None, "signal": "SIGTERM", "requested": "stop"},
            [Event.STOP_REQUESTED, Event.EXITED_BAD],
            "owner",
        ),
        ("stopping", {"code": 0, "requested": "stop"}, [Event.EXITED_BAD], "owner"),
        ("finishing", {"code": 0, "requested": "finish"}, [Event.EXITED_EARLY], "done"),
        ("running", {"code": 0, "requested": "finish"}, [Event.FINISH_REQUESTED, Event.EXITED_EARLY], "done"),
        ("finishing", {"code": 1, "requested": "finish"}, [Event.EXITED_BAD], "user_code"),
        ("starting", {"code": None, "error": "no such file"}, [Event.EXITED_BAD], "launch_failed"),
    ],
)
def test_verdicts_judge_puts_exit_records_in_words(state, record, events, reason):
    verdict = verdicts.judge(record, state, wanted_reason="", can_suspend=True)

    assert ([event for event in (verdict.first, verdict.event) if event], verdict.reason) == (events, reason)
    assert str(verdict.message)


def test_verdicts_judge_says_that_a_job_was_pruned_where_it_was_asked_to_finish_for_that():
    record = {"code": None, "signal": "SIGTERM", "requested": "finish"}

    verdict = verdicts.judge(record, "finishing", wanted_reason="pruned", can_suspend=False)

    assert (verdict.event, verdict.reason) == (Event.EXITED_EARLY, "pruned")


def test_launching_a_kind_that_hangs_ends_in_words_and_frees_the_cards(placed, kind, node, monkeypatch):
    monkeypatch.setattr(launch, "PREPARE_LIMIT_S", 0.2)
    job, attempt = placed(["true"])
    kind.prepare = lambda job, attempt, run: time.sleep(60)  # pause: far beyond what is waited for it

    begun = time.monotonic()
    launch.start(attempt.pk)
    job.refresh_from_db()

    assert time.monotonic() - begun < 30
    assert (job.state, job.reason) == ("failed", "launch_failed")
    assert str(job.message) == "The job could not be started: preparing it took longer than 0.2 s."
    assert set(node.devices.values_list("used", flat=True)) == {0}


def test_launching_that_hangs_elsewhere_is_given_up_by_the_agent(placed, node, monkeypatch):
    """The one who prepares it holds its lock for ever: no thread waits for that, and the cards come back."""
    from workers.execution.agent.attempt_monitor import SLACK_S, AttemptMonitor

    job, attempt = placed(["true"])
    home = RunDir.for_attempt(job.pk, 1).path
    home.mkdir(parents=True)
    watched = AttemptMonitor(attempt)
    with launch._one_at_a_time(home):
        launch.start(attempt.pk)  # returns at once
        assert watched.check(attempt)
        watched.seen -= launch.PREPARE_LIMIT_S + SLACK_S + 1
        watched.check(attempt)

    job.refresh_from_db()
    assert (job.state, job.reason) == ("failed", "launch_failed")
    assert set(node.devices.values_list("used", flat=True)) == {0}


def test_launching_starts_nothing_late_that_was_given_up(placed, kind):
    job, attempt = placed(["true"])

    def slow(job, attempt, run):
        launch.give_up(attempt)
        return Launch(argv=["true"])

    kind.prepare = slow
    launch.start(attempt.pk)

    assert not RunDir.for_attempt(job.pk, 1).log.exists()


def test_launching_that_hangs_holds_up_no_other_work_of_the_agent(node, monkeypatch):
    import threading

    from workers.execution.agent.loop import MAX_LAUNCHES, Agent

    never, begun = threading.Event(), []
    monkeypatch.setattr(launch, "start", lambda pk, rank: (begun.append(pk), never.wait(60)))
    agent = Agent("node1")
    try:
        for pk in range(MAX_LAUNCHES + 5):
            agent._start_rank((pk, 0))
            agent._start_rank((pk, 0))  # once at a time
        assert len(agent.launches) == MAX_LAUNCHES
        done = threading.Event()
        agent._in_background("publish", done.set)
        assert done.wait(30)
    finally:
        never.set()
        for thread in agent.launches.values():
            thread.join()
        agent.pool.shutdown()
    assert sorted(begun) == list(range(MAX_LAUNCHES))


@pytest.mark.skipif(tiers.best_tier(at_most=3)[0] < 3, reason="a uid per person needs root")
def test_launching_runs_a_job_under_the_uid_of_its_person_where_configured(placed, alice, monkeypatch):
    monkeypatch.setattr(tickets, "tier", lambda: tiers.best_tier(at_most=3))
    program = (
        "import os, pathlib; pathlib.Path(os.environ['AIP_OUTPUT_DIR'], 'mine').write_text('x'); print(os.getuid())"
    )
    job, attempt = placed([sys.executable, "-c", program])

    launch.start(attempt.pk)
    record = ended(job)
    run = RunDir.for_attempt(job.pk, 1)

    assert record["code"] == 0, run.log.read_text()
    assert printed(run.log).split() == [str(env.JOB_UIDS + alice.pk)]
    assert (run.outputs / "mine").stat().st_uid == env.JOB_UIDS + alice.pk
    assert (run.outputs / "mine").read_text() == "x"
