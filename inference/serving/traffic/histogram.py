"""Times counted in buckets whose bounds grow by a fifth: any percentile is known to a tenth, and rows add up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

GROWTH = 1.2
MIN_S = 0.0005
LAST = 70  # from 146 s on


def bucket(seconds: float) -> int:
    """The number of the bucket that a time falls in, 0..70."""
    if seconds <= MIN_S:
        return 0
    return min(LAST, math.ceil(math.log(seconds / MIN_S, GROWTH)))


def together(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up several rows; keys are numbers of buckets as text, as JSON has them."""
    total: dict[str, int] = {}
    for row in counts:
        for name, count in row.items():
            total[name] = total.get(name, 0) + count
    return total


def percentile(counts: Mapping[str, int], share: float) -> float | None:
    """The time in seconds that a share (0..1) of the requests stayed below; None without requests."""
    total = sum(counts.values())
    if not total:
        return None
    wanted, below = share * total, 0
    for number in sorted(int(name) for name in counts):
        inside = counts[str(number)]
        if below + inside >= wanted:
            low = MIN_S * GROWTH ** (number - 1) if number else 0.0
            high = MIN_S * GROWTH**number
            return low + (high - low) * (wanted - below) / inside
        below += inside
    return MIN_S * GROWTH**LAST
