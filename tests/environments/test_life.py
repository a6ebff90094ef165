"""When an environment counts as used, and what happens when it does not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accounts.models import Notification
from aiplatform import env
from tests.cases import case_table
from tests.environments.helpers import HOUR, NOTHING, NOW, again, judged, looks
from tests.factories import curves, work
from tests.long_form import first
from training.environments import actions as acts
from training.environments import activity, idle_release, jupyter, lifecycle, panel
from training.environments.jupyter import Answers
from workers.core import held_back, kinds, pins
from workers.core.models import Allocation, Attempt, Job, Node
from workers.core.states import Event
from workers.execution import lost_attempts
from workers.execution.exec.channels import ChannelRefused
from workers.jobs import actions, transitions


def ago(span: timedelta) -> str:
    return (NOW - span).isoformat().replace("+00:00", "Z")


@pytest.fixture(autouse=True)
def limit(monkeypatch):
    monkeypatch.setattr(env, "ENVIRONMENT_IDLE_HOURS", 2.0)


def test_environment_becomes_ready_by_its_answer_alone(running):
    row = judged(running(), None)
    assert (row.ready_at, panel.condition_of(row)) == (None, "starting")

    row = judged(row, NOTHING, NOW + timedelta(seconds=20))

    assert (row.ready_at, row.alive_by) == (NOW + timedelta(seconds=20), "start")
    assert panel.condition_of(row) == "ready"
    assert row.job.events.filter(event="ready").count() == 1


def test_environment_that_stops_answering_says_so(running):
    row = looks(running(), NOTHING, until=NOW)
    row = looks(row, None, since=NOW + timedelta(minutes=1), until=NOW + timedelta(minutes=3))

    assert panel.condition_of(row) == "silent"


def test_idle_environment_is_warned_then_stopped(running):
    row = looks(running(), NOTHING, until=NOW + timedelta(minutes=85))
    assert row.warned_at is None

    row = looks(row, NOTHING, since=NOW + timedelta(minutes=86), until=NOW + timedelta(minutes=91))
    assert panel.condition_of(row) == "idle"
    assert lifecycle.stops_at(row) == NOW + 2 * HOUR
    assert Notification.objects.filter(user=row.job.owner, kind="idle").count() == 1

    row = looks(row, NOTHING, since=NOW + timedelta(minutes=92), until=NOW + 2 * HOUR)
    assert (row.job.desired, row.job.reason) == ("stop", "idle")
    assert "hours" not in str(row.job.message)
    assert "2 h" in str(row.job.message)


@pytest.mark.parametrize(
    ("answers", "sign"),
    [
        (Answers([{"execution_state": "busy", "last_activity": ago(9 * HOUR)}], []), "kernel"),
        (Answers([{"execution_state": "idle", "last_activity": ago(timedelta(0))}], []), "kernel"),
        (Answers([], [{"name": "1", "last_activity": ago(timedelta(0))}]), "terminal"),
    ],
)
def test_kernels_and_terminals_are_signs_of_life(running, answers, sign):
    row = judged(judged(running(), NOTHING, NOW - HOUR), answers)

    assert (row.alive_by, row.idle_since > NOW - timedelta(minutes=1)) == (sign, True)


def test_open_tab_with_an_idle_kernel_is_no_sign_of_life(running):
    tab = Answers([{"execution_state": "idle", "connections": 3, "last_activity": ago(5 * HOUR)}], [])

    row = looks(running(), tab, until=NOW + timedelta(minutes=95))

    assert panel.condition_of(row) == "idle"


def test_busy_processors_and_cards_are_signs_of_life(running):
    row = looks(running(), NOTHING, until=NOW)
    attempt = row.job.attempts.get()

    def point(value, at):
        step = int((at - attempt.started_at).total_seconds())
        curves.report(attempt, "system/cpu", [(step, value, at)])

    point(3.0, NOW + timedelta(seconds=30))
    assert judged(row, NOTHING, NOW + timedelta(seconds=40)).alive_by == "start"
    point(150.0, NOW + timedelta(seconds=50))
    assert judged(row, NOTHING, NOW + timedelta(minutes=1)).alive_by == "cpu"
    Attempt.objects.filter(pk=attempt.pk).update(busy_at=NOW + timedelta(seconds=90))
    assert judged(row, NOTHING, NOW + timedelta(minutes=2)).alive_by == "cpu"  # it has no cards
    Job.objects.filter(pk=row.pk).update(gpus_per_node=1)
    row = judged(row, NOTHING, NOW + timedelta(minutes=2))
    assert (row.alive_by, row.idle_since) == ("card", NOW + timedelta(seconds=90))


def test_time_that_nobody_watched_is_held_against_nobody(running):
    row = looks(running(), NOTHING, until=NOW + timedelta(minutes=30))

    row = judged(row, NOTHING, NOW + 9 * HOUR)  # the platform was down, or the environment paused

    assert lifecycle.idle_for(row, NOW + 9 * HOUR) == timedelta(minutes=30)
    assert row.job.desired == "run"


def test_nobody_is_stopped_sooner_after_the_warning_than_it_said(running, monkeypatch):
    monkeypatch.setattr(env, "ENVIRONMENT_IDLE_HOURS", 4.0)
    row = looks(running(), NOTHING, until=NOW + 3 * HOUR, every=timedelta(minutes=2))
    monkeypatch.setattr(env, "ENVIRONMENT_IDLE_HOURS", 1.0)

    row = judged(row, NOTHING, NOW + 3 * HOUR + timedelta(minutes=1))
    assert (row.warned_at is not None, row.job.desired) == (True, "run")
    row = looks(row, NOTHING, since=row.warned_at, until=row.warned_at + timedelta(minutes=15))

    assert row.job.desired == "stop"


def test_another_attempt_begins_anew(running):
    row = looks(running(), NOTHING, until=NOW + timedelta(minutes=95))
    row.job.attempts.update(ended_at=NOW)
    Job.objects.filter(pk=row.pk).update(attempt_number=2)
    Attempt.objects.create(job=row.job, number=2, state="running", started_at=NOW + 2 * HOUR)

    old = row.job.attempts.get(number=1)
    row = judged(row, None, NOW + 2 * HOUR)
    lifecycle.judge(again(row), old, NOTHING, NOW + 3 * HOUR)  # an answer that came late

    assert (again(row).ready_at, again(row).warned_at, again(row).attempt) == (None, None, 2)


@case_table(
    "value",
    ["2026-13-45", "2026-11-23T11:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "", "x" * 99,
     None, 7, [], {}, "2026-11-23T99:00:00Z"],
)  # fmt: skip
def test_times_that_a_job_makes_up_are_read_or_passed_over(value):
    found = activity.at(value, NOW)

    assert found is None or (found.tzinfo is not None and found <= NOW)


@pytest.mark.parametrize("answer", [None, 7, "x", {}, {"a": 1}, [None, 7, [], {"execution_state": []}], [[]] * 2000])
def test_answers_of_any_shape_say_nothing(answer):
    assert activity.of_kernels(answer, NOW) is None
    assert activity.of_terminals(answer, NOW) is None


def test_no_environment_keeps_another_from_being_judged(running, monkeypatch):
    rows = [running(name=name) for name in ("first", "odd", "last")]
    answers = {
        rows[0].pk: NOTHING,
        rows[1].pk: Answers([{"execution_state": "busy", "last_activity": "2026-13-45"}], "no list"),
        rows[2].pk: NOTHING,
    }
    monkeypatch.setattr(jupyter, "whom", lambda job, attempt, token: job.pk)
    monkeypatch.setattr(jupyter, "query_server", answers.get)
    fails = lifecycle.judge

    def judge(row, *about):
        if row.pk == rows[0].pk:
            raise RuntimeError("whatever it was")
        fails(row, *about)

    monkeypatch.setattr(lifecycle, "judge", judge)
    lifecycle.look_at_all()

    assert [again(row).ready_at is not None for row in rows] == [False, True, True]


def test_environment_that_cannot_be_asked_is_not_judged(running, monkeypatch):
    row = looks(running(), NOTHING, until=NOW + timedelta(minutes=95))

    def whom(job, attempt, token):
        raise ChannelRefused("unreachable")

    monkeypatch.setattr(jupyter, "whom", whom)
    lifecycle.look_at_all()

    assert again(row).looked_at == row.looked_at
    assert again(row).job.desired == "run"


@pytest.fixture
def carded(running, machine):
    """An environment on one card, and `waits()`: somebody's job that waits for one."""
    row = running(name="carded")
    Job.objects.filter(pk=row.pk).update(gpus_per_node=1)

    def waits(**fields):
        about = {"gpus_per_node": 1, "device_kind": "gpu", "state": "queued"} | fields
        return work.job(row.job.owner, row.job.cluster, name="waiting", **about)

    return row, waits


def test_idle_environment_whose_cards_others_wait_for_is_warned_then_gives_them(carded, monkeypatch):
    monkeypatch.setattr(env, "ENVIRONMENT_GIVES_CARDS_MIN", 40.0)
    row, waits = carded
    row = looks(row, NOTHING, until=NOW + timedelta(minutes=35))
    assert row.gives_at is None

    waits()
    row = judged(row, NOTHING, NOW + timedelta(minutes=36))

    assert row.gives_at == NOW + timedelta(minutes=46)
    assert panel.condition_of(row) == "idle"
    assert Notification.objects.filter(user=row.job.owner, kind="idle").count() == 1
    for moment, found in ((45, set()), (46, {row.pk})):
        monkeypatch.setattr(idle_release, "now", lambda moment=moment: NOW + timedelta(minutes=moment))
        assert kinds.idle({"environment": [row.pk], "command": [1]}) == found


def test_owner_who_comes_back_keeps_the_cards(carded, monkeypatch):
    monkeypatch.setattr(env, "ENVIRONMENT_GIVES_CARDS_MIN", 40.0)
    row, waits = carded
    waits()
    row = looks(row, NOTHING, until=NOW + timedelta(minutes=31))
    assert row.gives_at is not None

    acts.mark_needed(row, by=row.job.owner)

    assert again(row).gives_at is None


NOBODY = [
    {"gpus_per_node": 0},
    {"device_kind": "npu"},
    {"state": "paused"},
    {"desired": "pause"},
    {"not_before": NOW + 9 * HOUR},
]


@pytest.mark.parametrize("waiting", first(2, NOBODY))
def test_environment_gives_nothing_where_nobody_waits_for_such_cards(carded, monkeypatch, waiting):
    monkeypatch.setattr(env, "ENVIRONMENT_GIVES_CARDS_MIN", 40.0)
    row, waits = carded
    waits(**waiting)

    assert looks(row, NOTHING, until=NOW + timedelta(minutes=50)).gives_at is None


@pytest.mark.parametrize(("machine_of_it", "gives"), [("elsewhere", False), ("node1", True)])
def test_environment_gives_nothing_to_jobs_that_belong_to_another_machine(carded, monkeypatch, machine_of_it, gives):
    monkeypatch.setattr(env, "ENVIRONMENT_GIVES_CARDS_MIN", 40.0)
    row, waits = carded
    other = waits()
    node = Node.objects.get()
    Allocation.objects.create(attempt=row.job.attempts.get(), device=node.devices.first(), node=node, share=1)
    monkeypatch.setattr(pins, "of_waiting", lambda: {other.pk: machine_of_it})
    monkeypatch.setattr(held_back, "by_machine", lambda names: {})

    assert (looks(row, NOTHING, until=NOW + timedelta(minutes=35)).gives_at is not None) == gives


def test_environment_keeps_its_cards_when_nobody_waits_any_more(carded, monkeypatch):
    monkeypatch.setattr(env, "ENVIRONMENT_GIVES_CARDS_MIN", 40.0)
    row, waits = carded
    other = waits()
    row = looks(row, NOTHING, until=NOW + timedelta(minutes=31))
    assert row.gives_at is not None

    Job.objects.filter(pk=other.pk).update(desired="pause")
    assert judged(row, NOTHING, NOW + timedelta(minutes=32)).gives_at is None

    Job.objects.filter(pk=other.pk).update(desired="run")
    assert judged(row, NOTHING, NOW + timedelta(minutes=50)).gives_at == NOW + timedelta(minutes=60)
    assert Notification.objects.filter(user=row.job.owner, kind="idle").count() == 2  # with the time that holds now


def test_environment_that_gave_its_cards_waits_paused_for_its_owner(carded, as_alice):
    row, waits = carded
    other = waits()

    job = actions.release(row.pk, for_job=other.pk, why="idle")
    assert lost_attempts.stays_paused(job)  # so its monitor lets it wait for its owner
    transitions.move(row.pk, Event.SUSPENDED, attempt=1, reason=job.reason, message=job.message)
    Job.objects.filter(pk=row.pk).update(desired="pause")

    job = Job.objects.get(pk=row.pk)
    assert (job.state, job.reason) == ("queued", "idle")
    assert f"job {other.pk}" in str(job.message)
    assert "GPUs were released" in as_alice.get(f"/environments/{row.pk}/state/").content.decode()
    actions.resume(job)
    assert Job.objects.get(pk=row.pk).desired == "run"
