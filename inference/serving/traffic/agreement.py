"""How far two answers of `predict` to the same picture agree, 0..1."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 1000  # boxes of an answer that are compared, its first ones
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
    one, two = one[:MOST], two[:MOST]
    both = [*one, *two]
    if not both:
        return 1.0
    if not all(isinstance(row, dict) and "name" in row for row in both):
        return None
    if all(_box(row) is not None for row in both):
        return 2 * _pairs(one, two) / len(both)
    return float(bool(one) and bool(two) and one[0]["name"] == two[0]["name"])


def _pairs(one: Sequence[Prediction], two: Sequence[Prediction]) -> int:
    """Pairs of one class, the best overlaps first, each box once."""
    classes = {row["name"] for row in one} & {row["name"] for row in two}
    return sum(_pairs_of(*(_corners(rows, name) for rows in (one, two))) for name in classes)


def _corners(rows: Sequence[Prediction], name: str) -> NDArray[np.float64]:
    """[n, 4] corners of the boxes of a class."""
    return np.array([row["box"] for row in rows if row["name"] == name], np.float64)


def _pairs_of(one: NDArray[np.float64], two: NDArray[np.float64]) -> int:
    """The same for [n, 4] and [m, 4] corners of one class."""
    overlaps = _overlaps(one, two)
    left, right = (places.tolist() for places in np.nonzero(overlaps >= SAME))
    order = np.argsort(-overlaps[left, right], kind="stable").tolist()
    used_left: set[int] = set()
    used_right: set[int] = set()
    for place in order:
        if left[place] not in used_left and right[place] not in used_right:
            used_left.add(left[place])
            used_right.add(right[place])
    return len(used_left)


def _overlaps(one: NDArray[np.float64], two: NDArray[np.float64]) -> NDArray[np.float64]:
    """[n, m] intersections over unions."""
    low, high = np.maximum(one[:, None, :2], two[None, :, :2]), np.minimum(one[:, None, 2:], two[None, :, 2:])
    inside = np.prod(np.clip(high - low, 0.0, None), 2)
    areas = [np.prod(np.clip(boxes[:, 2:] - boxes[:, :2], 0.0, None), 1) for boxes in (one, two)]
    union = areas[0][:, None] + areas[1][None, :] - inside
    return np.divide(inside, union, out=np.zeros_like(inside), where=union > 0)


def _box(row: Prediction) -> Sequence[float] | None:
    box = row.get("box")
    if not isinstance(box, list) or len(box) != 4:
        return None
    return box if all(isinstance(side, int | float) and math.isfinite(side) for side in box) else None
