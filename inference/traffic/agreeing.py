"""How far two answers of `predict` to the same picture agree, 0..1."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

SAME = 0.5  # overlap (intersection over union) from which two boxes show the same thing

Prediction = Mapping[str, Any]


def agreement(given: bytes, other: bytes) -> float | None:
    """Compare two answers; None where they cannot be.

    Boxes: twice the pairs of the same class that overlap by half, divided by all boxes (F1). Without boxes: whether
    the first class is the same.
    """
    try:
        one, two = (json.loads(body)["predictions"] for body in (given, other))
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(one, list) or not isinstance(two, list):
        return None
    both = [*one, *two]
    if not both:
        return 1.0
    if not all(isinstance(row, dict) and "name" in row for row in both):
        return None
    if all(_box(row) is not None for row in both):
        return 2 * _pairs(one, two) / len(both)
    return float(bool(one) and bool(two) and one[0]["name"] == two[0]["name"])


def _pairs(one: Sequence[Prediction], two: Sequence[Prediction]) -> int:
    """Pairs, the best overlaps first, each box once."""
    found = sorted(
        (
            (_overlap(_box(a) or (), _box(b) or ()), i, j)
            for i, a in enumerate(one)
            for j, b in enumerate(two)
            if a["name"] == b["name"]
        ),
        reverse=True,
    )
    left: set[int] = set()
    right: set[int] = set()
    for overlap, i, j in found:
        if overlap >= SAME and i not in left and j not in right:
            left.add(i)
            right.add(j)
    return len(left)


def _box(row: Prediction) -> Sequence[float] | None:
    box = row.get("box")
    return box if isinstance(box, list) and len(box) == 4 else None


def _overlap(a: Sequence[float], b: Sequence[float]) -> float:
    wide = min(a[2], b[2]) - max(a[0], b[0])
    high = min(a[3], b[3]) - max(a[1], b[1])
    if wide <= 0 or high <= 0:
        return 0.0
    area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - wide * high
    return wide * high / area if area > 0 else 0.0
