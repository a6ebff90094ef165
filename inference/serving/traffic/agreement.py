"""How far two answers of `predict` to the same picture agree, 0..1."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_BOXES = 1000  # boxes of an answer that are compared, its first ones
SAME = 0.5  # overlap (intersection over union) from which two boxes show the same thing

Prediction = Mapping[str, Any]


def agreement(answer: bytes, other: bytes) -> float | None:
    """Compare two responses; None if they cannot be compared.

    Boxes: twice the pairs of the same class that overlap by half, divided by all boxes (F1). Without boxes: whether
    the first class is the same.
    """
    try:
        first, second = (json.loads(body)["predictions"] for body in (answer, other))
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(first, list) or not isinstance(second, list):
        return None
    first, second = first[:MAX_BOXES], second[:MAX_BOXES]
    both = [*first, *second]
    if not both:
        return 1.0
    if not all(isinstance(row, dict) and "name" in row for row in both):
        return None
    if all(_box(row) is not None for row in both):
        return 2 * _pairs(first, second) / len(both)
    return float(bool(first) and bool(second) and first[0]["name"] == second[0]["name"])


def _pairs(first: Sequence[Prediction], second: Sequence[Prediction]) -> int:
    """Count pairs of the same class, the largest IoUs first, each box once."""
    classes = {row["name"] for row in first} & {row["name"] for row in second}
    return sum(_pairs_of(*(_corners(rows, name) for rows in (first, second))) for name in classes)


def _corners(rows: Sequence[Prediction], name: str) -> NDArray[np.float64]:
    """[n, 4] corners of the boxes of a class."""
    return np.array([row["box"] for row in rows if row["name"] == name], np.float64)


def _pairs_of(first: NDArray[np.float64], second: NDArray[np.float64]) -> int:
    """Count pairs of [n, 4] and [m, 4] corners of one class."""
    overlaps = _overlaps(first, second)
    left, right = (places.tolist() for places in np.nonzero(overlaps >= SAME))
    order = np.argsort(-overlaps[left, right], kind="stable").tolist()
    used_left: set[int] = set()
    used_right: set[int] = set()
    for index in order:
        if left[index] not in used_left and right[index] not in used_right:
            used_left.add(left[index])
            used_right.add(right[index])
    return len(used_left)


def _overlaps(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the IoUs [n, m]."""
    low, high = np.maximum(first[:, None, :2], second[None, :, :2]), np.minimum(first[:, None, 2:], second[None, :, 2:])
    inside = np.prod(np.clip(high - low, 0.0, None), 2)
    areas = [np.prod(np.clip(boxes[:, 2:] - boxes[:, :2], 0.0, None), 1) for boxes in (first, second)]
    union = areas[0][:, None] + areas[1][None, :] - inside
    return np.divide(inside, union, out=np.zeros_like(inside), where=union > 0)


def _box(row: Prediction) -> Sequence[float] | None:
    box = row.get("box")
    if not isinstance(box, list) or len(box) != 4:
        return None
    return box if all(isinstance(side, int | float) and math.isfinite(side) for side in box) else None
