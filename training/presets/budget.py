"""How far a training is and how long learning still takes. Arithmetic only.

The budget counts the time spent learning. Preparing data, evaluating and exporting come on top and are reported
beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LONGER = 0.2  # of the elapsed time that something takes at least until it ends
WINDOW_S = 300.0  # steps of the last minutes weigh most in the pace, or those of the last half of a long training
WINDOW_SHARE = 0.5
RESTORED_S = 60.0  # weight of the pace of an earlier attempt, whose machine and load may have been others


@dataclass
class Budget:
    """`budget_s` of learning and `last_step` bound a training, either or both; 0 and infinity are no bounds."""

    budget_s: float
    last_step: float

    def progress(self, step: int, learned_s: float) -> float:
        """0..1 (or more): the part of the steps done or the part of the budget used, whichever is more."""
        by_steps = step / self.last_step
        return max(by_steps, learned_s / self.budget_s) if self.budget_s else by_steps

    def left_s(self, step: int, learned_s: float, step_s: float | None) -> float | None:
        """Return the remaining learning time in seconds; None while it is unknown.

        Args:
            step_s: seconds that a step takes now; None before the first one.
        """
        by_time = max(self.budget_s - learned_s, 0.0) if self.budget_s else math.inf
        if self.last_step == math.inf:
            return by_time if self.budget_s else None
        return None if step_s is None else min(by_time, max(self.last_step - step, 0.0) * step_s)


class Pace:
    """Seconds that a step takes now: a mean over the steps of this attempt in which late ones weigh more.

    Args:
        earlier_step_s: seconds of a step at the end of an earlier attempt; counts like RESTORED_S of this one.
    """

    def __init__(self, earlier_step_s: float | None = None) -> None:
        self.steps = self.seconds = self.elapsed_s = 0.0
        self.first_step_s: float | None = None
        if earlier_step_s:
            self.steps, self.seconds = RESTORED_S / earlier_step_s, RESTORED_S

    def add(self, steps: int, seconds: float) -> None:
        """Take in `steps` that took `seconds` together; the first ones are slow and count only until others follow."""
        if self.first_step_s is None:
            self.first_step_s = seconds / steps
            return
        self.elapsed_s += seconds
        decay = math.exp(-seconds / max(WINDOW_S, WINDOW_SHARE * self.elapsed_s))
        self.steps, self.seconds = self.steps * decay + steps, self.seconds * decay + seconds

    @property
    def step_s(self) -> float | None:
        return self.seconds / self.steps if self.steps else self.first_step_s


def counted_down(thought_s: float, elapsed_s: float) -> float:
    """Seconds left of something thought to take `thought_s`, never nothing.

    What takes longer than thought is assumed to take a fifth of the elapsed time more, so no "0 s" is shown while it
    lasts.
    """
    return max(thought_s - elapsed_s, LONGER * elapsed_s)


def learning_rate(progress: float, *, warmup: float, anneal: str) -> float:
    """Return the learning rate as a share of its maximum: a short rise, then down to nothing at progress 1."""
    if progress < warmup:
        return max(progress / warmup, 0.01)
    down = min(1.0, (progress - warmup) / (1 - warmup))
    return 1 - down if anneal == "linear" else 0.5 * (1 + math.cos(math.pi * down))
