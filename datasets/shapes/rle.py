"""COCO's run-length masks, plain and compressed: checked, measured, traced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from aiplatform.lib.wording import Worded, message
from datasets.shapes import geometry
from datasets.shapes.outlines import MAX_POINTS, MAX_RINGS

MAX_TRACED_PX = 1 << 27  # larger masks than any image that is taken
#: Neighbour of a pixel (down, across), and the pixel's edge to it from corner to corner (x, y), clockwise.
_SIDES = (
    ((-1, 0), (0, 0), (1, 0)),
    ((0, 1), (1, 0), (1, 1)),
    ((1, 0), (1, 1), (0, 1)),
    ((0, -1), (0, 1), (0, 0)),
)


def rle_runs(rle: dict[str, Any]) -> tuple[tuple[int, int], list[int]]:
    """((height, width), run lengths: background first, column by column) of a plain or compressed RLE object.

    Raises:
        Worded: it does not describe a mask of its own size.
    """
    size, counts = rle.get("size"), rle.get("counts")
    if (
        not isinstance(size, list)
        or len(size) != 2
        or not all(isinstance(side, int) and 0 < side <= 100_000 for side in size)
    ):
        raise Worded(message("report.rle_size"))
    if isinstance(counts, str):
        runs = _decompress(counts)
    elif isinstance(counts, list) and all(isinstance(run, int) and run >= 0 for run in counts):
        runs = counts
    else:
        raise Worded(message("report.rle_counts"))
    if sum(runs) != size[0] * size[1]:
        raise Worded(message("report.rle_sum"))
    return (size[0], size[1]), runs


def _decompress(text: str) -> list[int]:
    runs: list[int] = []
    at = 0
    while at < len(text):
        value = shift = 0
        more = True
        while more:
            if at >= len(text) or shift > 60:
                raise Worded(message("report.rle_short"))
            code = ord(text[at]) - 48
            if not 0 <= code < 64:
                raise Worded(message("report.rle_foreign"))
            value |= (code & 0x1F) << shift
            more = bool(code & 0x20)
            at, shift = at + 1, shift + 5
            if not more and code & 0x10:
                value |= -1 << shift
        if len(runs) > 2:
            value += runs[-2]
        if value < 0:
            raise Worded(message("report.rle_negative"))
        runs.append(value)
    return runs


def mask_extents(size: tuple[int, int], runs: list[int]) -> tuple[float, float, float, float]:
    """x, y, width, height of the mask's pixels."""
    height, at = size[0], 0
    left, right, top, bottom = size[1], 0, height, 0
    for index, run in enumerate(runs):
        if index % 2 and run:
            first, last = at, at + run - 1
            left, right = min(left, first // height), max(right, last // height)
            if first // height != last // height:
                top, bottom = 0, height - 1
            else:
                top, bottom = min(top, first % height), max(bottom, last % height)
        at += run
    return float(left), float(top), float(right - left + 1), float(bottom - top + 1)


def outlines(size: tuple[int, int], runs: list[int]) -> list[list[float]]:
    """Outlines along the edges of the mask's pixels, clockwise; what they enclose is the mask with its holes filled.

    Pixels that touch at a corner only are parts of their own. [] where the mask would need more points than a shape
    may have.
    """
    height, width = size
    if height * width > MAX_TRACED_PX:
        return []
    flat = np.zeros(height * width, dtype=bool)
    ends = np.cumsum(runs)
    for begin, end in zip(ends[0::2], ends[1::2], strict=False):
        flat[begin:end] = True
    inside = np.zeros((height + 2, width + 2), dtype=bool)
    inside[1:-1, 1:-1] = flat.reshape(width, height).T
    following: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for (down, across), (from_x, from_y), (to_x, to_y) in _SIDES:
        free = inside & ~np.roll(inside, (-down, -across), axis=(0, 1))
        for y, x in np.argwhere(free) - 1:
            following.setdefault((x + from_x, y + from_y), []).append((x + to_x, y + to_y))
        if len(following) > 20 * MAX_POINTS:
            return []
    rings = [ring for ring in _loops(following) if geometry.signed_area(ring) > 0]
    return rings if len(rings) <= MAX_RINGS and sum(map(len, rings)) <= 2 * MAX_POINTS else []


def _loops(following: dict[tuple[int, int], list[tuple[int, int]]]) -> Iterator[list[float]]:
    """Closed ways along the edges, corners only. Where two ways meet the one to the right is taken."""
    while following:
        at = start = next(iter(following))
        ring: list[float] = []
        before: tuple[int, int] | None = None
        first: tuple[int, int] | None = None
        while at != start or before is None:
            choice = following[at]
            steps = [(x - at[0], y - at[1]) for x, y in choice]
            right = None if before is None else (-before[1], before[0])
            index = steps.index(right) if right in steps else 0
            to, step = choice.pop(index), steps[index]
            if not choice:
                del following[at]
            if before is not None and step != before:
                ring += [float(at[0]), float(at[1])]
            first, before, at = first or step, step, to
        if before != first:
            ring += [float(start[0]), float(start[1])]
        yield ring
