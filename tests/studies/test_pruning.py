"""Trials that are not worth going on end early; what the pruner knows lies in the rows."""

from __future__ import annotations

import pytest

from tests.studies.helpers import Killed, end, live, report, run, study
from training.studies import advancing
from training.studies.models import Study
from workers.core.models import Job
from workers.core.states import Desired, Event, Reason
from workers.jobs import actions

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]


def _with_pruner(alice, **fields) -> tuple[Study, list]:
    made = study(alice, max_trials=6, at_once=6, pruner={"name": "median", "startup": 2, "warmup": 1}, **fields)
    advancing.advance(made.pk)
    return made, [run(trial) for trial in live(made)]


def test_median_pruner_ends_a_bad_trial_and_keeps_its_last_value(alice):
    made, attempts = _with_pruner(alice)
    for attempt in attempts[:2]:
        report(attempt, [1.0, 0.9, 0.8])
        end(attempt)
    report(attempts[2], [9.0, 9.0])
    report(attempts[3], [0.5, 0.4])

    advancing.advance(made.pk)
    asked = [(job.desired, job.reason) for job in Job.objects.order_by("pk")[2:4]]
    advancing.advance(made.pk)
    report(attempts[2], [8.0], first=3)
    actions.transitions.move(attempts[2].job_id, Event.FINISH_REQUESTED, reason=Reason.PRUNED)
    end(attempts[2], Event.EXITED_EARLY, reason=Reason.PRUNED)
    advancing.advance(made.pk)

    trial = made.trials.get(number=2)
    assert asked == [(Desired.FINISH, Reason.PRUNED), (Desired.RUN, "")]
    assert (trial.state, trial.values, trial.pruned_attempt) == ("pruned", [8.0], 1)
    assert trial.training.job.spec["study"]["pruned"] == 1
    assert made.trials.get(number=3).state == "running"


def test_death_between_the_word_to_prune_and_its_row_leaves_neither(alice, monkeypatch):
    made, attempts = _with_pruner(alice)
    for attempt in attempts[:2]:
        report(attempt, [1.0, 0.9, 0.8])
        end(attempt)
    report(attempts[2], [9.0, 9.0])
    real = actions.finish

    def killed(*args, **named):
        real(*args, **named)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(actions, "finish", killed)
        with pytest.raises(Killed):
            advancing.advance(made.pk)
    between = (Job.objects.get(pk=attempts[2].job_id).desired, made.trials.get(number=2).judged)
    advancing.advance(made.pk)

    assert between == (Desired.RUN, 0)
    assert Job.objects.get(pk=attempts[2].job_id).desired == Desired.FINISH
    assert made.trials.get(number=2).pruned_attempt == 1


def test_successive_halving_remembers_its_rungs_in_the_rows(alice):
    made = study(alice, max_trials=4, at_once=4, pruner={"name": "asha", "warmup": 1, "factor": 2})
    advancing.advance(made.pk)
    attempts = [run(trial) for trial in live(made)]

    for place, attempt in enumerate(attempts):
        report(attempt, [float(place), float(place)])
        advancing.advance(made.pk)

    rows = list(made.trials.order_by("number"))
    assert [row.attrs.get("completed_rung_0") for row in rows] == [0.0, 1.0, 2.0, 3.0]
    assert [bool(row.pruned_attempt) for row in rows] == [False, True, True, True]
