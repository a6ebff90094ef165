"""Histograms in the form in which they are kept: 30 buckets of equal width, and the bands of a distribution. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

BUCKETS = 30
BANDS = (0.0, 0.0668, 0.1587, 0.3085, 0.5, 0.6915, 0.8413, 0.9332, 1.0)
"""Shares of the values below each line of a distribution: both ends, the middle, and ½, 1 and 1½ deviations from it."""
Numbers = np.ndarray[Any, np.dtype[Any]]


def from_limits(low: float, high: float, limits: Numbers, counts: Numbers) -> dict[str, Any] | None:
    """Of buckets that end at `limits`, as TensorBoard's first form has them."""
    size = min(len(limits), len(counts))
    if not size:
        return None
    edges = np.concatenate([[low], np.clip(limits[:size].astype(float), low, high)])
    edges[-1] = high
    return _made(edges, counts[:size].astype(float))


def from_triples(rows: Numbers) -> dict[str, Any] | None:
    """Of rows of left, right and count, as its second form has them."""
    if not len(rows):
        return None
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    return _made(np.concatenate([rows[:, 0], rows[-1:, 1]]), rows[:, 2])


def from_buckets(low: float, high: float, counts: Sequence[float]) -> dict[str, Any] | None:
    """Of buckets of equal width."""
    return _made(np.linspace(low, high, len(counts) + 1), np.asarray(counts, float)) if len(counts) else None


def _made(edges: Numbers, counts: Numbers) -> dict[str, Any] | None:
    """Build the histogram; None for invalid input: edges that are not numbers, negative counts, no value at all."""
    if not (np.isfinite(edges).all() and np.isfinite(counts).all()) or (counts < 0).any():
        return None
    total = float(counts.sum())
    if not total or not np.isfinite(total):
        return None
    edges = np.maximum.accumulate(edges)
    low, high = float(edges[0]), float(edges[-1])
    if not np.isfinite(high - low):
        return None
    below = np.concatenate([[0.0], np.cumsum(counts)])
    if low == high:  # all values are one
        return {"low": low, "high": high, "counts": [total], "bands": [low] * len(BANDS), "total": total}
    # a bucket without width holds all its values at one place: a step, which interpolation needs a little room for
    places = edges + np.arange(len(edges)) * ((high - low) * 1e-12)
    grid = np.linspace(places[0], places[-1], BUCKETS + 1)
    rebinned = np.diff(np.interp(grid, places, below))
    filled = np.flatnonzero(np.diff(below, prepend=-1.0) > 0)
    bands = np.interp(np.array(BANDS) * total, below[filled], edges[filled])
    first = int(np.flatnonzero(counts)[0])
    bands[0], bands[-1] = edges[first], edges[int(np.flatnonzero(counts)[-1]) + 1]
    return {
        "low": low, "high": high, "counts": [round(value, 3) for value in rebinned.tolist()], "bands": bands.tolist(),
        "total": total,
    }  # fmt: skip
