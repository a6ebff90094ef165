"""Shapes as numbers: areas, extents, clipping, crossings. No Django, no I/O.

A *ring* is a flat list `[x0, y0, x1, y1, …]` in pixels of the upright image, not closed
(the first point is not repeated). A *shape* is a list of rings: one for a box or a plain
polygon, several for an object seen in parts. Pixel coordinates are continuous: an image of
800×600 spans 0 ≤ x ≤ 800, 0 ≤ y ≤ 600.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

import numpy as np

Ring = Sequence[float]
Rings = Sequence[Ring]

MIN_AREA = 1e-6  # px²; below it a shape covers nothing that a float can tell from nothing
BLOCK = 512


class Box(NamedTuple):
    """An axis-parallel rectangle in pixels: left, top, width, height."""

    x: float
    y: float
    width: float
    height: float


def signed_area(ring: Ring) -> float:
    """Shoelace area in px²; positive when the points run clockwise on the screen (y down).

    The sum starts from the first point, so large offsets do not eat small areas.
    """
    x0, y0 = ring[0], ring[1]
    xs = [x - x0 for x in ring[0::2]]
    ys = [y - y0 for y in ring[1::2]]
    return (sum(map(mul, xs, ys[1:])) - sum(map(mul, xs[1:], ys))) / 2


def area(rings: Rings) -> float:
    """Area in px² as COCO itself stores it: the sum of |shoelace| of the parts."""
    return sum(abs(signed_area(ring)) for ring in rings)


def shoelace(ring: Ring) -> float:
    """Area in px² of a ring read from a file, summed as most COCO writers do: areas of imported versions depend on
    its last digits. A self-crossing ring counts its signed parts.
    """
    total, x0, y0 = 0.0, ring[-2], ring[-1]
    for x1, y1 in zip(ring[::2], ring[1::2], strict=True):
        total += x0 * y1 - x1 * y0
        x0, y0 = x1, y1
    return abs(total) / 2


def extents(rings: Rings) -> Box:
    """The smallest box around all points."""
    left, right = min(min(ring[0::2]) for ring in rings), max(max(ring[0::2]) for ring in rings)
    top, bottom = min(min(ring[1::2]) for ring in rings), max(max(ring[1::2]) for ring in rings)
    return Box(left, top, right - left, bottom - top)


def clip_box(box: Box, width: float, height: float) -> Box:
    """The part of `box` inside an image of `width` × `height` pixels; zero-sized when none is."""
    left, top = min(max(box.x, 0.0), width), min(max(box.y, 0.0), height)
    right, bottom = min(max(box.x + box.width, 0.0), width), min(max(box.y + box.height, 0.0), height)
    return Box(left, top, right - left, bottom - top)


def box_ring(x: float, y: float, width: float, height: float) -> list[float]:
    """The four corners of a box, clockwise from the top left."""
    return [x, y, x + width, y, x + width, y + height, x, y + height]


def is_box(ring: Ring) -> bool:
    """Whether a ring is an axis-parallel rectangle written as `box_ring` does."""
    if len(ring) != 8:
        return False
    x0, y0, x1, y1, x2, y2, x3, y3 = ring
    return x0 == x3 and x1 == x2 and y0 == y1 and y2 == y3 and x0 < x1 and y0 < y2


def first_crossing(ring: Ring) -> tuple[int, int] | None:
    """The first pair of edges (i, j) that cross in their insides, or None for a simple ring.

    Edges that only touch, or run along one another as a bridge to a hole does, do not cross.
    Edges are sorted by their left end and compared in blocks, so an outline of 10,000 points
    takes milliseconds and the worst shape below a second.
    """
    points = np.asarray(ring, dtype=np.float64).reshape(-1, 2)
    count = len(points)
    if count < 4:
        return None
    starts, ends = points, np.roll(points, -1, axis=0)
    low, high = np.minimum(starts, ends), np.maximum(starts, ends)
    order = np.argsort(low[:, 0], kind="stable")
    lefts = low[order, 0]
    for begin in range(0, count, BLOCK):
        block = order[begin : begin + BLOCK]
        stop = int(np.searchsorted(lefts, high[block, 0].max(), side="right"))
        others = order[begin:stop]
        near = (
            (low[block, None, 0] <= high[None, others, 0])
            & (low[None, others, 0] <= high[block, None, 0])
            & (low[block, None, 1] <= high[None, others, 1])
            & (low[None, others, 1] <= high[block, None, 1])
        )
        rows, columns = np.nonzero(near)
        a, b = block[rows], others[columns]
        different = a != b
        a, b = a[different], b[different]
        if len(a) == 0:
            continue
        p, q, r, s = starts[a], ends[a], starts[b], ends[b]
        crossing = (_turn(p, q, r) * _turn(p, q, s) < 0) & (_turn(r, s, p) * _turn(r, s, q) < 0)
        hits = np.nonzero(crossing)[0]
        if len(hits):
            i, j = int(a[hits[0]]), int(b[hits[0]])
            return (i, j) if i < j else (j, i)
    return None


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Sign of the turn a → b → c, row by row; 0 where the three lie on a line."""
    first = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1])
    second = (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    turn = first - second
    return np.where(np.abs(turn) <= 1e-12 * (np.abs(first) + np.abs(second)), 0.0, np.sign(turn))
