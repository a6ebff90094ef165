"""The decider alone: the same rows give the same answer, and nobody pays for Optuna who asks nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from training.studies import decider, space
from training.studies.decider import Past, Problem
from training.studies.objectives import Pruner

XY = space.read(["x = -5 .. 5.0", "y = 1 .. 64 log", "mode = a, b, true, 3"])
NUMBERS = XY[:2]


def _square(params) -> float:
    return params["x"] ** 2 + 1 / params["y"]


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid", "cmaes", "nsga2"])
def test_sampler_answers_the_same_for_the_same_rows(sampler):
    ranges, trials, memory = NUMBERS if sampler == "cmaes" else XY, [], {}
    for _number in range(25):
        problem = Problem(ranges, ["minimize"], sampler, None, 3, 25, memory=memory)
        first, second = decider.suggest_params(problem, trials), decider.suggest_params(problem, trials)
        assert first == second
        assert {one.name: one.read(first.params[one.name]) for one in ranges} == first.params
        memory = first.memory
        trials.append(Past(first.params, "complete", [_square(first.params)], attrs=first.attrs))

    assert len({str(past.params) for past in trials}) > 10


def test_running_trials_keep_others_from_asking_the_same():
    done = [Past({"x": x, "y": 8, "mode": "a"}, "complete", [x * x]) for x in (-4.0, -2.0, 0.1, 1.0, 2.0, 3.0, 4.0)]
    problem = Problem(XY, ["minimize"], "tpe", None, 3, 12)
    trials = list(done)
    for _beside in range(4):
        trials.append(Past(decider.suggest_params(problem, trials).params, "running"))

    asked = [past.params["x"] for past in trials[len(done) :]]
    assert len(set(asked)) == 4


def test_failed_and_pruned_trials_are_no_hindrance():
    trials = [Past({"x": 1.0, "y": 2}, "failed"), Past({"x": 2.0, "y": 2}, "pruned", [4.0], [9.0, 4.0])]
    for sampler in ("tpe", "random", "cmaes", "nsga2"):
        assert decider.suggest_params(Problem(NUMBERS, ["minimize"], sampler, None, 0, 20), trials).params


def test_median_pruner_looks_at_the_same_point_of_others():
    trials = [Past({"x": float(n), "y": 1}, "complete", [1.0], [3.0, 2.0, 1.0]) for n in range(4)]
    judge = decider.Judge(
        Problem(NUMBERS, ["minimize"], "tpe", Pruner("median", startup=3, warmup=2), 0),
        [*trials, Past({"x": 0.0, "y": 1}, "running"), Past({"x": 0.0, "y": 1}, "running")],
    )

    assert judge.prunes(4, [9.0, 9.0, 9.0], 0)[:2] == (True, 2)  # two points are everybody's
    assert judge.prunes(5, [3.0, 1.9], 0)[:2] == (False, 2)


def test_importance_follows_the_direction_that_is_wanted():
    trials = [Past({"x": x / 4, "y": y}, "complete", [-((x / 4) ** 2)]) for x in range(-20, 21, 4) for y in (1, 8, 64)]
    found = decider.importance(Problem(NUMBERS, ["maximize"], "tpe", None, 0), trials)

    assert next(iter(found)) == "x"
    assert found["x"] > 0.9


def test_importance_says_nothing_of_too_few_or_equal_trials():
    problem = Problem(NUMBERS, ["minimize"], "tpe", None, 0)
    same = [Past({"x": float(x), "y": 1}, "complete", [1.0]) for x in range(9)]

    assert decider.importance(problem, same) == {}
    assert decider.importance(problem, same[:2]) == {}


def test_web_starts_without_optuna():
    code = (
        "import os, sys; os.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings'; import django; django.setup();"
        "import aiplatform.urls, aiplatform.celery, training.studies.tasks;"
        "print([name for name in sys.modules if name.split('.')[0] in ('optuna', 'cmaes', 'sqlalchemy')])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)

    assert said.stdout.strip() == "[]"
