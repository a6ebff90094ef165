"""The decider: which parameters come next, which trial is not worth going on, what mattered. Pure: no row, no clock.

Optuna lives in this file alone and keeps nothing: each question builds a study in memory out of what the rows say, and
the answer hangs on that and on the number of the trial. So whoever is killed between a question and its row asks again
and hears the same. What samplers and pruners remember of a trial (CMA-ES its distribution, a grid its place, successive
halving its rungs) comes back as JSON beside the answer and is given again the next time.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from training.studies.objectives import ASHA, MINIMIZE, Pruner
from training.studies.space import CHOICE, INT, Range, Value

COMPLETE, PRUNED, FAILED, RUNNING = "complete", "pruned", "failed", "running"
STARTUP = 10  # random trials before TPE learns, at most
PED_ANOVA, FANOVA = "ped-anova", "fanova"
MIN_FOR_IMPORTANCE = 4


@dataclass(frozen=True)
class Past:
    """A trial as its row says. `points`: the values of the first objective so far, in their order."""

    params: Mapping[str, Value]
    state: str
    values: Sequence[float] = ()
    points: Sequence[float] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Problem:
    """What a study searches and how; `warm` are trials of earlier studies, which come before its own."""

    space: Sequence[Range]
    directions: Sequence[str]
    sampler: str
    pruner: Pruner | None
    seed: int
    max_trials: int = 100
    warm: Sequence[Past] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """Parameters of the next trial, what is to be kept of it, and what is to be kept of the study."""

    params: dict[str, Value]
    attrs: dict[str, Any]
    memory: dict[str, Any]


def suggest_params(problem: Problem, trials: Sequence[Past], *, wanted: Mapping[str, Value] | None = None) -> Answer:
    """Choose the parameters of trial number `len(trials)`.

    Args:
        trials: all there are, in the order of their numbers.
        wanted: values that a person asked for; the sampler adds what is missing.
    """
    with _quietly() as optuna:
        study = _study(optuna, problem, trials, number=len(trials))
        if wanted:
            missing = [dimension for dimension in problem.space if dimension.name not in wanted]
            full = dict(wanted)
            if problem.sampler == "grid":  # its places know no other values
                full |= {dimension.name: dimension.on_grid()[0] for dimension in missing}
            study.enqueue_trial(full)
        trial = study.ask(
            fixed_distributions={dimension.name: _distribution(optuna, dimension) for dimension in problem.space}
        )
        frozen = study._storage.get_trial(trial._trial_id)
        params = {dimension.name: dimension.read(_plain(frozen.params[dimension.name])) for dimension in problem.space}
        return Answer(params, _jsonable(frozen.system_attrs), _jsonable(study._storage.get_study_system_attrs(0)))


class Judge:
    """Evaluates running trials together: the points of one trial count for the trials after it."""

    def __init__(self, problem: Problem, trials: Sequence[Past]) -> None:
        with _quietly() as optuna:
            self.optuna, self.first = optuna, len(problem.warm) if problem.sampler != "grid" else 0
            self.study = _study(optuna, problem, trials, number=len(trials), pruner=_pruner(optuna, problem.pruner))

    def prunes(self, number: int, points: Sequence[float], judged: int) -> tuple[bool, int, dict[str, Any]]:
        """Return whether a trial should end, after how many of its points that was clear, and the attributes to store.

        Args:
            points: all its values so far.
            judged: of how many of them it was asked before.
        """
        index = self.first + number
        with _quietly() as optuna:
            count, pruned = judged, False
            while count < len(points) and not pruned:
                count += 1
                frozen = self.study._storage.get_trial(index)
                trial = optuna.trial.FrozenTrial(
                    number=index, trial_id=index, state=frozen.state, value=None, datetime_start=frozen.datetime_start,
                    datetime_complete=None, params=frozen.params, distributions=frozen.distributions, user_attrs={},
                    system_attrs=dict(frozen.system_attrs),
                    intermediate_values={at + 1: value for at, value in enumerate(points[:count])},
                )  # fmt: skip
                pruned = bool(self.study.pruner.prune(self.study, trial))
            return pruned, count, _jsonable(self.study._storage.get_trial(index).system_attrs)


def importance(
    problem: Problem, trials: Sequence[Past], *, objective: int = 0, evaluator: str = PED_ANOVA
) -> dict[str, float]:
    """Return how much each parameter mattered for an objective, largest first, with sum 1; {} if that is unknown."""
    done = [trial for trial in [*problem.warm, *trials] if trial.state == COMPLETE]
    varied = [
        dimension.name for dimension in problem.space if len({_plain(past.params[dimension.name]) for past in done}) > 1
    ]
    if len(done) < MIN_FOR_IMPORTANCE or not varied or len({past.values[objective] for past in done}) < 2:
        return {}
    with _quietly() as optuna:
        study = _study(optuna, problem, trials, number=len(trials))
        module = optuna.importance
        estimator = (
            module.FanovaImportanceEvaluator(seed=0) if evaluator == FANOVA else module.PedAnovaImportanceEvaluator()
        )
        direction = problem.directions[objective]

        def target(trial: Any) -> float:
            return trial.values[objective] if direction == MINIMIZE or evaluator == FANOVA else -trial.values[objective]

        # PED-ANOVA looks at the best ones and takes low for good where it is told what to look at
        importances = module.get_param_importances(study, evaluator=estimator, params=varied, target=target)
    return {name: float(value) for name, value in importances.items()}


@contextmanager
def _quietly() -> Iterator[ModuleType]:
    """Import Optuna without its warnings and log lines; only processes that make decisions import it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is experimental to its makers
        import optuna  # noqa: PLC0415  a second and 60 MB that the web need not pay at its start

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        yield optuna


def _study(optuna: Any, problem: Problem, trials: Sequence[Past], *, number: int, pruner: Any = None) -> Any:
    study = optuna.create_study(
        storage=optuna.storages.InMemoryStorage(),
        sampler=_sampler(optuna, problem, number),
        pruner=pruner or optuna.pruners.NopPruner(),
        directions=list(problem.directions),
    )
    for key, value in problem.memory.items():
        study._storage.set_study_system_attr(study._study_id, key, value)
    distributions = {dimension.name: _distribution(optuna, dimension) for dimension in problem.space}
    warm = () if problem.sampler == "grid" else problem.warm  # a grid is gone through whatever was known
    for past in (*warm, *trials):
        study.add_trial(_frozen(optuna, past, distributions))
    return study


def _frozen(optuna: Any, past: Past, distributions: Mapping[str, Any]) -> Any:
    states = optuna.trial.TrialState
    state = {COMPLETE: states.COMPLETE, PRUNED: states.PRUNED, FAILED: states.FAIL, RUNNING: states.RUNNING}[past.state]
    has_values = past.state in (COMPLETE, PRUNED) and past.values
    return optuna.trial.create_trial(
        state=state, values=list(past.values) if has_values else None, params=dict(past.params),
        distributions=dict(distributions), system_attrs=dict(past.attrs),
        intermediate_values={at + 1: value for at, value in enumerate(past.points)},
    )  # fmt: skip


def _distribution(optuna: Any, dimension: Range) -> Any:
    kinds = optuna.distributions
    if dimension.kind == CHOICE:
        return kinds.CategoricalDistribution(dimension.choices)
    if dimension.kind == INT:
        return kinds.IntDistribution(
            int(dimension.low), int(dimension.high), log=dimension.log, step=int(dimension.step) or 1
        )
    return kinds.FloatDistribution(
        float(dimension.low), float(dimension.high), log=dimension.log, step=dimension.step or None
    )


def _sampler(optuna: Any, problem: Problem, number: int) -> Any:
    samplers = optuna.samplers
    seed = int(np.random.SeedSequence([problem.seed, number]).generate_state(1)[0])
    if problem.sampler == "grid":  # the seed shuffles its points, which have to keep their numbers
        return samplers.GridSampler(
            {dimension.name: dimension.on_grid() for dimension in problem.space}, seed=problem.seed
        )
    if problem.sampler == "cmaes":
        start = samplers.RandomSampler(seed=seed)
        return samplers.CmaEsSampler(seed=seed, independent_sampler=start, warn_independent_sampling=False)
    if problem.sampler == "nsga2":
        return samplers.NSGAIISampler(seed=seed, population_size=max(4, min(50, problem.max_trials // 4)))
    if problem.sampler == "random":
        return samplers.RandomSampler(seed=seed)
    startup = max(3, min(STARTUP, problem.max_trials // 3))
    return samplers.TPESampler(seed=seed, n_startup_trials=startup, multivariate=True, constant_liar=True)


def _pruner(optuna: Any, pruner: Pruner | None) -> Any:
    pruners = optuna.pruners
    if pruner is None:
        return pruners.NopPruner()
    if pruner.name == ASHA:
        return pruners.SuccessiveHalvingPruner(min_resource=pruner.warmup, reduction_factor=pruner.factor)
    return pruners.MedianPruner(n_startup_trials=pruner.startup, n_warmup_steps=pruner.warmup)


def _plain(value: Any) -> Value:
    """A number of NumPy's as one of Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _jsonable(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(attrs, default=lambda value: value.tolist()))
