"""Curves of several runs on one grid: the minimum, mean and maximum of each stretch of the axis. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Numbers = np.ndarray[Any, np.dtype[Any]]
Read = Callable[[], tuple[Numbers, Numbers]]
FARTHEST = 2.0**63  # beyond it lies no step and no second


@dataclass(frozen=True)
class Line:
    """One run on the grid: a value for each stretch, NaN where it has no point. `points`: how many are in the span."""

    points: int
    low: Numbers
    mean: Numbers
    high: Numbers


@dataclass(frozen=True)
class Grid:
    """`x` is the middle of each stretch, or the step itself where each step has a stretch of its own."""

    x: Numbers
    lines: Sequence[Line]


def on_one_grid(curves: Sequence[Read], *, width: int, span: tuple[float, float] | None = None) -> Grid:
    """Put curves on one grid, one after the other, so that no more than one has to be in memory.

    Args:
        curves: each gives places on the axis and values of a run, places in any order; asked twice.
        width: at most so many stretches.
        span: part of the axis, both ends included; None is from the first to the last point of all.
    """
    ends = [_ends(read) for read in curves]
    filled = [own for own in ends if own is not None]
    if span is None:
        span = (min(own[0] for own in filled), max(own[1] for own in filled)) if filled else (0.0, 0.0)
    begin, end = np.clip(span, -FARTHEST, FARTHEST).tolist()
    first, steps = np.ceil(begin), np.floor(end) - np.ceil(begin) + 1
    if all(own[2] for own in filled) and steps <= width:  # each step is seen alone
        places = first + np.arange(steps)
        begin, end, width = (first - 0.5, first + steps - 0.5, len(places)) if steps else (begin, end, 0)
    else:
        width = width if begin < end else 1
        places = begin + (np.arange(width) + 0.5) * ((end - begin) / width)
    return Grid(places, [_line(*read(), begin, end, width) for read in curves])


def _ends(read: Read) -> tuple[float, float, bool] | None:
    """The first and the last place of a curve, and whether they are whole numbers; None of one without points."""
    x, _y = read()
    return (float(x.min()), float(x.max()), np.issubdtype(x.dtype, np.integer)) if len(x) else None


def _line(x: Numbers, y: Numbers, begin: float, end: float, width: int) -> Line:
    inside = (x >= begin) & (x <= end)
    if not inside.all():
        x, y = x[inside], y[inside]
    bands = np.full((3, width), np.nan)
    if len(x):
        wide = (end - begin) or 1.0
        stretch = np.minimum(((x - begin) / wide * width).astype(np.int64), width - 1)
        if (np.diff(stretch) < 0).any():
            order = np.argsort(stretch, kind="stable")
            stretch, y = stretch[order], y[order]
        first = np.flatnonzero(np.diff(stretch, prepend=-1))
        taken, counts = stretch[first], np.diff(first, append=len(y))
        bands[0, taken] = np.minimum.reduceat(y, first)
        with np.errstate(over="ignore"):
            bands[1, taken] = np.add.reduceat(y, first) / counts
        if not np.isfinite(bands[1, taken]).all():  # the sum is beyond all numbers, the mean is not
            bands[1, taken] = np.add.reduceat(y / np.repeat(counts, counts), first)
        bands[2, taken] = np.maximum.reduceat(y, first)
        bands[1] = np.clip(bands[1], bands[0], bands[2])  # no rounding takes it past them
    return Line(len(x), *bands)
