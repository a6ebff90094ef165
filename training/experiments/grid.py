"""Curves of several runs on one grid: the minimum, mean and maximum of each stretch of the axis. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Numbers = np.ndarray[Any, np.dtype[Any]]


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


def on_one_grid(
    curves: Sequence[tuple[Numbers, Numbers]], *, width: int, span: tuple[float, float] | None = None
) -> Grid:
    """Put curves on one grid.

    Args:
        curves: places on the axis and values of each run, places in any order.
        width: at most so many stretches.
        span: part of the axis, both ends included; None is from the first to the last point of all.
    """
    filled = [x for x, _y in curves if len(x)]
    if span is None:
        span = (min(float(x.min()) for x in filled), max(float(x.max()) for x in filled)) if filled else (0.0, 0.0)
    begin, end = span
    whole = all(np.issubdtype(x.dtype, np.integer) for x in filled)
    if whole and np.floor(end) - np.ceil(begin) < width:  # each step is seen alone
        width = int(np.floor(end) - np.ceil(begin)) + 1
        places = np.ceil(begin) + np.arange(width)  # an arange of large numbers could be of any length
        begin, end = (places[0] - 0.5, places[-1] + 0.5) if width else (begin, end)
    else:
        width = width if begin < end else 1
        places = begin + (np.arange(width) + 0.5) * (end - begin) / width
    return Grid(places, [_line(x, y, begin, end, width) for x, y in curves])


def _line(x: Numbers, y: Numbers, begin: float, end: float, width: int) -> Line:
    inside = (x >= begin) & (x <= end)
    x, y = x[inside], y[inside].astype(np.float64)
    found = np.full((3, width), np.nan)
    if len(x):
        wide = end - begin
        stretch = (
            np.minimum(((x - begin) * (width / wide)).astype(np.int64), width - 1) if wide else np.zeros(len(x), int)
        )
        if (np.diff(stretch) < 0).any():
            order = np.argsort(stretch, kind="stable")
            stretch, y = stretch[order], y[order]
        first = np.flatnonzero(np.diff(stretch, prepend=-1))
        taken = stretch[first]
        found[0, taken] = np.minimum.reduceat(y, first)
        found[2, taken] = np.maximum.reduceat(y, first)
        with np.errstate(over="ignore", invalid="ignore"):  # a sum may be too large for a float, the mean is not
            mean = np.add.reduceat(y, first) / np.diff(first, append=len(y))
        found[1, taken] = np.clip(mean, found[0, taken], found[2, taken])
    return Line(len(x), *found)
