"""Pause, resume, stop and limits of studies."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.studies.helpers import complete, end, live, numbers, report, run, study
from training.runs.models import TrainingJob
from training.studies import actions, advancing
from training.studies.models import Study
from workers.core.models import Job
from workers.core.states import Event, Reason

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]


def test_paused_study_begins_nothing_until_it_is_resumed(alice):
    made = study(alice, max_trials=3, at_once=1)
    advancing.advance(made.pk)

    actions.pause(made, by=alice)
    complete(live(made)[0], 1.0)
    advancing.advance(made.pk)
    paused = numbers(made)
    actions.resume(made, by=alice)
    advancing.advance(made.pk)

    assert (paused, numbers(made)) == ([0], [0, 1])
    assert made.trials.get(number=0).state == "complete"


def test_stopped_study_ends_its_trials(alice):
    made = study(alice, max_trials=9, at_once=3)
    advancing.advance(made.pk)
    running = run(live(made)[0])

    actions.stop(made, by=alice)
    advancing.advance(made.pk)

    states = sorted(Job.objects.values_list("state", "desired"))
    assert states == [("running", "stop"), ("stopped", "run"), ("stopped", "run")]
    end(running, Event.STOP_REQUESTED, published=False)
    end(running, Event.EXITED_BAD, reason=Reason.OWNER)
    advancing.advance_due()
    assert {one.state for one in made.trials.all()} == {"failed"}
    assert (Study.objects.get().state, TrainingJob.objects.count()) == ("stopped", 3)


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({"time_limit": timedelta(hours=1)}, "study.time_used"),
        ({"hours_limit": 1e-9}, "study.hours_used"),
        ({"target": 100.0}, "study.target_reached"),
    ],
)
def test_study_that_has_enough_stops_what_waits_and_lets_run_what_runs(alice, limits, code):
    made = study(alice, max_trials=50, at_once=3, **limits)
    advancing.advance(made.pk)
    first, second, waiting = live(made)
    running = run(second)
    report(running, [3.0])
    complete(first, 2.0)
    Study.objects.filter(pk=made.pk).update(started_at=made.started_at - timedelta(hours=2))

    advancing.advance(made.pk)
    states = list(Job.objects.order_by("pk").values_list("state", flat=True))
    end(running)
    advancing.advance(made.pk)
    advancing.advance(made.pk)

    made.refresh_from_db()
    assert states == ["succeeded", "running", "stopped"]
    assert (made.state, made.message.code, made.trials.count()) == ("done", code, 3)
    assert waiting.number == 2


def test_study_whose_training_is_refused_says_why_and_can_be_resumed(alice):
    made = study(alice, max_trials=2)
    role = alice.roles.get()
    alice.roles.clear()

    advancing.advance(made.pk)
    made.refresh_from_db()
    refused = (made.state, made.message.code, made.trials.count(), Job.objects.count())
    alice.roles.add(role)
    actions.resume(made, by=alice)
    advancing.advance(made.pk)

    assert refused == ("failed", "study.refused", 0, 0)
    assert numbers(made) == [0, 1]


def test_study_whose_trials_all_fail_gives_up(alice):
    made = study(alice, max_trials=50, at_once=1)
    for _round in range(5):
        advancing.advance(made.pk)
        end(run(live(made)[0]), Event.EXITED_BAD, reason=Reason.USER_CODE)
    advancing.advance(made.pk)

    made.refresh_from_db()
    assert (made.state, made.message.code, made.trials.count()) == ("failed", "study.only_failures", 5)
