"""How studies go on: one trial and one job at a time, whatever dies in between."""

from __future__ import annotations

import pytest

from tests.long_form import first
from tests.studies.helpers import Killed, complete, end, live, numbers, report, run, study
from training.runs.models import TrainingJob
from training.studies import actions as acts
from training.studies import advancing, decider
from training.studies.models import Study, Trial
from workers.core.models import Job
from workers.core.states import Event, Reason
from workers.jobs import actions

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]


def _run_through(made: Study, most: int = 100) -> None:
    """Advance until it is over; each trial reaches the square of its x."""
    for _round in range(most):
        advancing.advance(made.pk)
        made.refresh_from_db()
        if made.is_over:
            return
        for trial in live(made):
            complete(trial, trial.params["x"] ** 2)
    raise AssertionError("it does not end")


def test_study_makes_its_trials_some_at_once_each_with_a_job_of_its_own(alice):
    made = study(alice, max_trials=5, at_once=2)

    advancing.advance(made.pk)
    advancing.advance(made.pk)
    begun = [(one.number, one.training.job.name, one.training.params) for one in made.trials.all()]
    _run_through(made)

    assert [one[:2] for one in begun] == [(0, "hunt_0"), (1, "hunt_1")]
    assert begun[0][2] == made.trials.get(number=0).params
    assert (made.state, numbers(made), TrainingJob.objects.count()) == ("done", [0, 1, 2, 3, 4], 5)
    assert str(made.message) == "All 5 trials are done."
    assert all(one.values == [pytest.approx(one.params["x"] ** 2)] for one in made.trials.all())


def test_study_of_the_same_seed_and_outcomes_asks_the_same(alice):
    first, second = study(alice, name="a", max_trials=8), study(alice, name="b", max_trials=8)

    _run_through(first)
    _run_through(second)

    assert [one.params for one in first.trials.all()] == [one.params for one in second.trials.all()]


@pytest.mark.long
def test_tpe_finds_more_than_its_first_trials_did(alice):
    made = study(alice, space=["x = -5 .. 5.0"], max_trials=20, at_once=1)

    _run_through(made)

    values = [one.values[0] for one in made.trials.order_by("number")]
    assert min(values[6:]) < min(values[:6])


DIES = {
    "before it asks": ("training.studies.decider.suggest_params", False),
    "between answer and row": ("training.studies.decider.suggest_params", True),
    "before the job": ("training.studies.requests.submit", False),
    "after the job, before the trial": ("training.studies.requests.submit", True),
    "after the mark": ("training.runs.trials.mark", True),
    "before the trial's row": ("training.studies.models.Trial.objects.create", False),
    "after the trial's row, before the commit": ("training.studies.models.Trial.objects.create", True),
    "after the commit, before the next": ("training.studies.advancing._create_trial", True),
    "before outcomes are written": ("training.studies.advancing._write", False),
    "after an outcome is written": ("training.studies.advancing._write", True),
    "before it ends": ("training.studies.advancing._end", False),
    "after it ended, before the news": ("training.studies.advancing._over", True),
}


@pytest.mark.parametrize("moment", first(4, sorted(DIES)))
def test_a_death_at_any_moment_loses_and_doubles_no_trial(alice, monkeypatch, moment):
    path, after = DIES[moment]
    undisturbed = study(alice, name="undisturbed", max_trials=4, at_once=2)
    _run_through(undisturbed)
    made = study(alice, max_trials=4, at_once=2)
    deaths = 0

    def deadly(real):
        def call(*args, **named):
            nonlocal deaths
            if deaths_left:
                deaths_left.pop()
                deaths += 1
                if after:
                    real(*args, **named)
                raise Killed
            return real(*args, **named)

        return call

    deaths_left: list[int] = []
    target, name = path.rsplit(".", 1)
    holder = _resolved(target)
    monkeypatch.setattr(holder, name, deadly(getattr(holder, name)))
    for _round in range(30):
        deaths_left[:] = [1]
        try:
            advancing.advance(made.pk)
        except Killed:
            deaths_left.clear()
            advancing.advance(made.pk)
        deaths_left.clear()
        made.refresh_from_db()
        if made.is_over:
            break
        for trial in live(made):
            complete(trial, trial.params["x"] ** 2)

    trials = list(made.trials.order_by("number"))
    assert deaths > 0
    assert (made.state, [one.number for one in trials]) == ("done", [0, 1, 2, 3])
    assert len({one.training_id for one in trials}) == 4
    assert Job.objects.filter(name__startswith="hunt_").count() == 4
    assert [one.params for one in trials] == [one.params for one in undisturbed.trials.order_by("number")]


def _resolved(path: str):
    import importlib

    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            found = getattr(found, name)
        return found
    raise AssertionError(path)


def test_a_decision_that_others_overtook_is_dropped(alice, monkeypatch):
    made, real, asked = study(alice, max_trials=3, at_once=1), decider.suggest_params, []

    def slow(problem, trials, **more):
        answer = real(problem, trials, **more)
        if not asked:
            asked.append(answer)
            advancing.advance(made.pk)
        return answer

    monkeypatch.setattr(decider, "suggest_params", slow)
    advancing.advance(made.pk)

    assert (numbers(made), TrainingJob.objects.count()) == ([0], 1)


def test_preempted_requeued_and_restored_jobs_stay_the_same_trial(alice):
    made = study(alice, max_trials=1)
    advancing.advance(made.pk)
    trial = made.trials.get()

    attempt = run(trial)
    report(attempt, [4.0, 3.0])
    actions.transitions.move(attempt.job_id, Event.LOST, reason=Reason.NODE_LOST)
    actions.transitions.move(attempt.job_id, Event.REQUEUED)
    advancing.advance(made.pk)
    trial.refresh_from_db()
    waiting = trial.state
    again = run(trial)
    report(again, [2.0, 1.0], first=2)
    end(again, Event.EXITED_BAD, reason=Reason.USER_CODE)
    advancing.advance(made.pk)
    trial.refresh_from_db()
    failed = (trial.state, Study.objects.get().state)
    actions.transitions.move(attempt.job_id, Event.RESTORED)
    assert Study.objects.due().count() == 1
    advancing.advance_due()
    trial.refresh_from_db()
    restored = trial.state
    complete(trial, 0.5)
    advancing.advance_due()

    trial.refresh_from_db()
    assert (waiting, failed, restored) == ("running", ("failed", "failed"), "running")
    assert (trial.state, trial.values, trial.attempt) == ("complete", [0.5], 3)
    assert (Trial.objects.count(), Job.objects.count()) == (1, 1)
    assert not Study.objects.due().exists()


@pytest.mark.parametrize(
    ("event", "values", "line", "state"),
    [
        (Event.EXITED_OK, [1.0], "", "complete"),
        (Event.EXITED_OK, [], "", "failed"),
        (Event.EXITED_OK, [1.0], '{"step": 2, "loss": NaN}\n', "failed"),
        (Event.EXITED_OK, [1.0], '{"step": 2, "loss": NaN}\n{"step": 3, "loss": 1.0}\n', "complete"),
        (Event.EXITED_BAD, [1.0], "", "failed"),
    ],
)
def test_what_became_of_a_job_is_what_became_of_its_trial(alice, event, values, line, state):
    from workers.core.runs import RunDir

    made = study(alice, max_trials=1)
    advancing.advance(made.pk)
    attempt = run(made.trials.get())
    report(attempt, values)
    folder = RunDir.for_attempt(attempt.job_id, attempt.number)
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.metrics.write_text(line)
    end(attempt, event, reason=Reason.USER_CODE, published=False)

    advancing.advance(made.pk)
    early = made.trials.get().state
    Job.objects.filter(pk=attempt.job_id).update(published_attempt=1)
    advancing.advance(made.pk)

    assert (early, made.trials.get().state) == ("running", state)


def test_grid_goes_through_each_of_its_points_once(alice):
    made = study(alice, space=["x = 1 .. 3", "mode = a, b"], sampler="grid", max_trials=100, at_once=3)

    _run_through(made)

    tried = sorted((one.params["x"], one.params["mode"]) for one in made.trials.all())
    assert tried == [(x, mode) for x in (1, 2, 3) for mode in ("a", "b")]


def test_cmaes_keeps_its_distribution_in_the_rows(alice):
    made = study(alice, space=["x = -5 .. 5.0", "y = -5 .. 5.0"], sampler="cmaes", max_trials=14, at_once=1)

    _run_through(made)

    kept = [name for one in made.trials.all() for name in one.attrs]
    assert "cma:generation" in kept
    assert any(name.startswith("cma:optimizer") for name in kept)


def test_several_objectives_have_a_value_each(alice):
    goals = [{"key": "loss", "direction": "minimize"}, {"key": "speed", "direction": "maximize"}]
    made = study(alice, objectives=goals, sampler="nsga2", max_trials=6, at_once=3)

    for _round in range(2):
        advancing.advance(made.pk)
        for trial in live(made):
            attempt = run(trial)
            report(attempt, [1.0])
            report(attempt, [7.0], "speed")
            end(attempt)
    advancing.advance(made.pk)

    assert [one.values for one in made.trials.all()] == [[1.0, 7.0]] * 6
    assert Study.objects.get().state == "done"


def test_parameters_by_hand_are_tried_next_once(alice):
    made = study(alice, space=["x = -5 .. 5.0", "y = -5 .. 5.0"], max_trials=3, at_once=1, enqueue=[{"x": 0.25}])
    acts.put_next(made, {"x": 1.5, "y": 2})

    _run_through(made)

    rows = list(made.trials.order_by("number"))
    assert (rows[0].params["x"], rows[1].params) == (0.25, {"x": 1.5, "y": 2.0})
    assert [one.enqueued for one in rows] == [True, True, False]
    assert Study.objects.get().enqueued == []


@pytest.mark.long
def test_warm_start_begins_with_the_trials_of_an_earlier_study(alice):
    earlier = study(alice, name="earlier", max_trials=15, at_once=1)
    _run_through(earlier)
    best = min(one.values[0] for one in earlier.trials.all())

    made = study(alice, name="later", max_trials=12, at_once=1, warm_start=[earlier], seed=5)
    _run_through(made)
    first = made.trials.order_by("number")[:6]

    assert len(made.warm) == 15
    assert sum(abs(one.params["x"]) < 2.5 for one in first) >= 4, (best, [one.params for one in first])
