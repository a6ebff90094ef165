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


def ask(problem: Problem, trials: Sequence[Past], *, wanted: Mapping[str, Value] | None = None) -> Answer:
    """Choose the parameters of trial number `len(trials)`.

    Args:
        trials: all there are, in the order of their numbers.
        wanted: values that a person asked for; the sampler adds what is missing.
    """
    with _quietly() as optuna:
        study = _study(optuna, problem, trials, number=len(trials))
        if wanted:
            missing = [one for one in problem.space if one.name not in wanted]
            full = dict(wanted)
            if problem.sampler == "grid":  # its places know no other values
                full |= {one.name: one.on_grid()[0] for one in missing}
            study.enqueue_trial(full)
        trial = study.ask(fixed_distributions={one.name: _distribution(optuna, one) for one in problem.space})
        kept = study._storage.get_trial(trial._trial_id)
        params = {one.name: one.read(_plain(kept.params[one.name])) for one in problem.space}
        return Answer(params, _jsonable(kept.system_attrs), _jsonable(study._storage.get_study_system_attrs(0)))


class Judge:
    """Judges running trials beside each other: what it hears of one counts for the next."""

    def __init__(self, problem: Problem, trials: Sequence[Past]) -> None:
        with _quietly() as optuna:
            self.optuna, self.first = optuna, len(problem.warm) if problem.sampler != "grid" else 0
            self.study = _study(optuna, problem, trials, number=len(trials), pruner=_pruner(optuna, problem.pruner))

    def prunes(self, number: int, points: Sequence[float], judged: int) -> tuple[bool, int, dict[str, Any]]:
        """Whether a trial should end, after how many of its points that was clear, and what is to be kept of it.

        Args:
            points: all its values so far.
            judged: of how many of them it was asked before.
        """
        place = self.first + number
        with _quietly() as optuna:
            seen, pruned = judged, False
            while seen < len(points) and not pruned:
                seen += 1
                kept = self.study._storage.get_trial(place)
                trial = optuna.trial.FrozenTrial(
                    number=place, trial_id=place, state=kept.state, value=None, datetime_start=kept.datetime_start,
                    datetime_complete=None, params=kept.params, distributions=kept.distributions, user_attrs={},
                    system_attrs=dict(kept.system_attrs),
                    intermediate_values={at + 1: value for at, value in enumerate(points[:seen])},
                )  # fmt: skip
                pruned = bool(self.study.pruner.prune(self.study, trial))
            return pruned, seen, _jsonable(self.study._storage.get_trial(place).system_attrs)


def importance(
    problem: Problem, trials: Sequence[Past], *, objective: int = 0, evaluator: str = PED_ANOVA
) -> dict[str, float]:
    """How much each parameter mattered for an objective, the most first; they add up to 1. {} where nobody can say."""
    done = [one for one in [*problem.warm, *trials] if one.state == COMPLETE]
    varied = [one.name for one in problem.space if len({_plain(past.params[one.name]) for past in done}) > 1]
    if len(done) < MIN_FOR_IMPORTANCE or not varied or len({past.values[objective] for past in done}) < 2:
        return {}
    with _quietly() as optuna:
        study = _study(optuna, problem, trials, number=len(trials))
        ways = optuna.importance
        way = ways.FanovaImportanceEvaluator(seed=0) if evaluator == FANOVA else ways.PedAnovaImportanceEvaluator()
        direction = problem.directions[objective]

        def target(trial: Any) -> float:
            return trial.values[objective] if direction == MINIMIZE or evaluator == FANOVA else -trial.values[objective]

        # PED-ANOVA looks at the best ones and takes low for good where it is told what to look at
        found = ways.get_param_importances(study, evaluator=way, params=varied, target=target)
    return {name: float(value) for name, value in found.items()}


@contextmanager
def _quietly() -> Iterator[ModuleType]:
    """Optuna, which is imported by whoever has to decide something and by nobody else; it talks to nobody."""
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
    distributions = {one.name: _distribution(optuna, one) for one in problem.space}
    warm = () if problem.sampler == "grid" else problem.warm  # a grid is gone through whatever was known
    for past in (*warm, *trials):
        study.add_trial(_frozen(optuna, past, distributions))
    return study


def _frozen(optuna: Any, past: Past, distributions: Mapping[str, Any]) -> Any:
    states = optuna.trial.TrialState
    state = {COMPLETE: states.COMPLETE, PRUNED: states.PRUNED, FAILED: states.FAIL, RUNNING: states.RUNNING}[past.state]
    told = past.state in (COMPLETE, PRUNED) and past.values
    return optuna.trial.create_trial(
        state=state, values=list(past.values) if told else None, params=dict(past.params),
        distributions=dict(distributions), system_attrs=dict(past.attrs),
        intermediate_values={at + 1: value for at, value in enumerate(past.points)},
    )  # fmt: skip


def _distribution(optuna: Any, one: Range) -> Any:
    kinds = optuna.distributions
    if one.kind == CHOICE:
        return kinds.CategoricalDistribution(one.choices)
    if one.kind == INT:
        return kinds.IntDistribution(int(one.low), int(one.high), log=one.log, step=int(one.step) or 1)
    return kinds.FloatDistribution(float(one.low), float(one.high), log=one.log, step=one.step or None)


def _sampler(optuna: Any, problem: Problem, number: int) -> Any:
    samplers = optuna.samplers
    seed = int(np.random.SeedSequence([problem.seed, number]).generate_state(1)[0])
    if problem.sampler == "grid":  # the seed shuffles its points, which have to keep their numbers
        return samplers.GridSampler({one.name: one.on_grid() for one in problem.space}, seed=problem.seed)
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
