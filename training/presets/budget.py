"""How far a training is, what must be kept free for its end, and how long it still takes. Arithmetic only.

All seconds count from the job's start, pauses left out. What comes after the last step (a checkpoint, scoring, export)
is part of the budget, so learning ends early enough for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SPARE = 1.1  # the end may take so many times what it is thought to take
LEAST = 0.25  # share of a budget that is learned in, whatever start and end cost
TOLD_FROM = 0.01  # share of the learning before which no time is promised where steps decide
LAST_FIFTH = 0.2


@dataclass
class Budget:
    """`budget_s` and `last_step` bound a training, either or both; 0 and infinity are no bounds."""

    budget_s: float
    last_step: float
    began_s: float = 0.0  # used when the first step began
    score_s: float = 0.0  # what scoring, a checkpoint and the export take: thought, later measured
    save_s: float = 0.0
    export_s: float = 0.0

    @property
    def ending_s(self) -> float:
        """How long the end takes: everything after the last step."""
        return self.score_s + self.save_s + self.export_s

    def progress(self, step: int, used_s: float) -> float:
        """0..1 (or more): the part of the steps done or the part of the time for learning used, whichever is more."""
        by_steps = step / self.last_step
        if not self.budget_s:
            return by_steps
        span = max(self.budget_s - SPARE * self.ending_s - self.began_s, self.budget_s * LEAST)
        return max(by_steps, (used_s - self.began_s) / span)

    def left_s(self, step: int, used_s: float) -> float | None:
        """Seconds until the model is there; None while nothing can be said."""
        progress = min(self.progress(step, used_s), 1.0)
        if progress < TOLD_FROM:
            return max(self.budget_s - used_s, 0.0) if self.budget_s and self.last_step == math.inf else None
        return (used_s - self.began_s) * (1 - progress) / progress + self.ending_s


def counted_down(thought_s: float, elapsed_s: float) -> float:
    """Seconds left of something thought to take `thought_s`: it gets less all the time, and never is nothing.

    Over the last fifth of the thought time it falls ever slower, so that what takes longer does not stand still.
    """
    last = LAST_FIFTH * thought_s
    over = elapsed_s - (thought_s - last)
    return thought_s - elapsed_s if over <= 0 or not last else last * math.exp(-over / last)


def learning_rate(progress: float, *, warmup: float, anneal: str) -> float:
    """Return the learning rate as a share of its maximum: a short rise, then down to nothing at progress 1."""
    if progress < warmup:
        return max(progress / warmup, 0.01)
    down = min(1.0, (progress - warmup) / (1 - warmup))
    return 1 - down if anneal == "linear" else 0.5 * (1 + math.cos(math.pi * down))
