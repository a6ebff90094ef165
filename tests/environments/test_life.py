"""When an environment counts as used, and what happens when it does not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from accounts.models import Notification
from aiplatform import env
from training.environments import jupyter, life, panel, signs
from training.environments.jupyter import Answers
from training.environments.models import Environment
from workers.exec.channels import ChannelRefused
from workers.models import Attempt, Job, MetricPoint

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOTHING = Answers([], [])


def ago(span: timedelta) -> str:
    return (NOW - span).isoformat().replace("+00:00", "Z")


@pytest.fixture(autouse=True)
def limit(monkeypatch):
    monkeypatch.setattr(env, "ENVIRONMENT_IDLE_HOURS", 2.0)


@pytest.fixture
def running(submitted):
    """`running(name="a")`: an environment that has run for ten hours."""

    def run(**fields):
        row = submitted(**fields)
        Job.objects.filter(pk=row.pk).update(state="running", attempt_number=1)
        Attempt.objects.create(job_id=row.pk, number=1, state="running", started_at=NOW - 10 * HOUR)
        return again(row)

    return run


def again(row) -> Environment:
    return Environment.objects.select_related("job__owner", "job__cluster").get(pk=row.pk)


def judged(row, answers, at=NOW):
    """The row after it was judged, as the sweep does it."""
    row = again(row)
    life.judge(row, row.job.attempts.get(number=row.job.attempt_number), answers, at)
    return again(row)


def looks(row, answers, *, until, since=NOW, every=timedelta(minutes=1)):
    """The row after it was looked at every minute."""
    at = since
    while at <= until:
        row = judged(row, answers, at)
        at += every
    return row


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
    assert life.stops_at(row) == NOW + 2 * HOUR
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
        MetricPoint.objects.create(attempt=attempt, key="system/cpu", step=step, value=value, at=at)

    point(3.0, NOW + timedelta(seconds=30))
    assert judged(row, NOTHING, NOW + timedelta(seconds=40)).alive_by == "start"
    point(150.0, NOW + timedelta(seconds=50))
    assert judged(row, NOTHING, NOW + timedelta(minutes=1)).alive_by == "cpu"
    Attempt.objects.filter(pk=attempt.pk).update(busy_at=NOW + timedelta(seconds=90))
    row = judged(row, NOTHING, NOW + timedelta(minutes=2))
    assert (row.alive_by, row.idle_since) == ("card", NOW + timedelta(seconds=90))


def test_time_that_nobody_watched_is_held_against_nobody(running):
    row = looks(running(), NOTHING, until=NOW + timedelta(minutes=30))

    row = judged(row, NOTHING, NOW + 9 * HOUR)  # the platform was down, or the environment paused

    assert life.idle_for(row, NOW + 9 * HOUR) == timedelta(minutes=30)
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
    life.judge(again(row), old, NOTHING, NOW + 3 * HOUR)  # an answer that came late

    assert (again(row).ready_at, again(row).warned_at, again(row).attempt) == (None, None, 2)


@pytest.mark.parametrize(
    "value",
    ["2026-13-45", "2026-11-23T11:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "", "x" * 99,
     None, 7, [], {}, "2026-11-23T99:00:00Z"],
)  # fmt: skip
def test_times_that_a_job_makes_up_are_read_or_passed_over(value):
    found = signs.at(value, NOW)

    assert found is None or (found.tzinfo is not None and found <= NOW)


@pytest.mark.parametrize("answer", [None, 7, "x", {}, {"a": 1}, [None, 7, [], {"execution_state": []}], [[]] * 2000])
def test_answers_of_any_shape_say_nothing(answer):
    assert signs.of_kernels(answer, NOW) is None
    assert signs.of_terminals(answer, NOW) is None


def test_no_environment_keeps_another_from_being_judged(running, monkeypatch):
    rows = [running(name=name) for name in ("first", "odd", "last")]
    answers = {
        rows[0].pk: NOTHING,
        rows[1].pk: Answers([{"execution_state": "busy", "last_activity": "2026-13-45"}], "no list"),
        rows[2].pk: NOTHING,
    }
    monkeypatch.setattr(jupyter, "whom", lambda job, attempt, token: job.pk)
    monkeypatch.setattr(jupyter, "ask", answers.get)
    fails = life.judge

    def judge(row, *about):
        if row.pk == rows[0].pk:
            raise RuntimeError("whatever it was")
        fails(row, *about)

    monkeypatch.setattr(life, "judge", judge)
    life.look_at_all()

    assert [again(row).ready_at is not None for row in rows] == [False, True, True]


def test_environment_that_cannot_be_asked_is_not_judged(running, monkeypatch):
    row = looks(running(), NOTHING, until=NOW + timedelta(minutes=95))

    def whom(job, attempt, token):
        raise ChannelRefused("unreachable")

    monkeypatch.setattr(jupyter, "whom", whom)
    life.look_at_all()

    assert again(row).looked_at == row.looked_at
    assert again(row).job.desired == "run"
