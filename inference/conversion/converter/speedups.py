"""How many times as fast a variant is as its source: paired rounds until the confidence interval is narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MIN_ROUNDS, MAX_ROUNDS = 4, 12
MAX_SPREAD = 1.1  # upper by lower end of an interval that is narrow
#: Two-sided 95 % quantiles of Student's t, by degrees of freedom.
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201}


@dataclass(frozen=True)
class Speedup:
    """Geometric mean of the ratios of the rounds with the ends of its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    @property
    def is_narrow(self) -> bool:
        return self.high <= MAX_SPREAD * self.low


def from_ratios(ratios: Sequence[float]) -> Speedup | None:
    """Compute the speed-up from paired ratios, one for each round; None for fewer than two."""
    if len(ratios) < 2:
        return None
    logs = [math.log(ratio) for ratio in ratios]
    mean = sum(logs) / len(logs)
    spread = math.sqrt(sum((value - mean) ** 2 for value in logs) / (len(logs) - 1) / len(logs))
    half = T95[min(len(logs) - 1, max(T95))] * spread
    return Speedup(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def is_enough(rounds: int, speedups: Sequence[Speedup | None]) -> bool:
    """Return whether measuring ends after so many rounds."""
    if rounds < MIN_ROUNDS:
        return False
    return rounds >= MAX_ROUNDS or all(speedup is not None and speedup.is_narrow for speedup in speedups)
