"""Progress of a training by its scored points: when to learn more finely, and when to stop. Arithmetic only.

The schedule of tools that "train until no progress": after some points without a better one the learning rate
falls to a tenth, and where that has been done often enough without use, the training is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .run import Refused

NAME = "plateau"  # among the values of `anneal`
FACTOR = 0.1  # of the learning rate, each time nothing got better
LOWERED = 2  # times at most; the next time is the end
DEFAULT_PATIENCE = 5  # points without a better one, where nobody said how many
WARM_STEPS = 100  # in which the rate rises where no progress towards an end is known


def chosen(params: Mapping[str, Any]) -> tuple[str, int]:
    """How the learning rate falls, and for how many points nothing may get better; 0: for ever.

    Raises:
        Refused: nothing says when to stop, or progress is never looked at.
    """
    anneal, patience = params["anneal"], params["patience"]
    if anneal == NAME:
        patience = patience or DEFAULT_PATIENCE
    if not (params["budget_minutes"] or params["epochs"] or params["steps"]):
        if not patience:
            raise Refused("Nothing says when to stop: set budget_minutes, epochs, steps or patience.")
        anneal = NAME  # a rate that falls with the time needs an end
    if patience and not params["eval_share"]:
        raise Refused("Progress is seen by scoring along the way: set eval_share above 0, or patience to 0.")
    return anneal, patience


def lowered(scores: Sequence[float], patience: int) -> int:
    """Return how often `patience` points in a row brought no better score (higher is better)."""
    best, waited, times = -float("inf"), 0, 0
    for score in scores:
        waited = 0 if score > best else waited + 1
        best = max(best, score)
        if waited == patience:
            waited, times = 0, times + 1
    return times


def over(scores: Sequence[float], *, patience: int, anneal: str) -> bool:
    """Whether the training is over: no progress, and no finer learning left to try."""
    return bool(patience) and lowered(scores, patience) > (LOWERED if anneal == NAME else 0)


def learning_rate(scores: Sequence[float], step: int, *, patience: int, warm: bool) -> float:
    """The learning rate as a share of its maximum."""
    rise = min(1.0, (step + 1) / WARM_STEPS) if warm else 1.0
    return float(rise * FACTOR ** min(lowered(scores, patience), LOWERED))
