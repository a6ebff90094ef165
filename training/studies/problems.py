"""Rows of a study as the decider reads them."""

from __future__ import annotations

from collections.abc import Iterable

from training.studies import objectives, space
from training.studies.decider import FAILED, Past, Problem
from training.studies.models import Study, Trial


def for_study(study: Study) -> Problem:
    """Return what a study searches and how."""
    return Problem(
        space=space.of_rows(study.space),
        directions=[objective.direction for objective in objectives.of_rows(study.objectives)],
        sampler=study.sampler,
        pruner=objectives.of_row(study.pruner),
        seed=study.seed,
        max_trials=study.max_trials,
        warm=[Past(row["params"], row["state"], row["values"], [v for _s, v in row["points"]]) for row in study.warm],
        memory=study.memory,
    )


def pasts(trials: Iterable[Trial]) -> list[Past]:
    """Trials in the order of their numbers."""
    return [past(trial) for trial in sorted(trials, key=lambda row: row.number)]


def past(trial: Trial) -> Past:
    """One trial; without a value it failed, whatever else it says."""
    state = FAILED if trial.state in ("complete", "pruned") and not trial.values else trial.state
    return Past(trial.params, state, trial.values, [value for _step, value in trial.points], trial.attrs)
