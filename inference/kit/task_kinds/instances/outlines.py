"""Outlines of where a grid of numbers is above nought, by marching squares (Lorensen and Cline, 1987, in the plane).

What lies outside the grid is below, so every outline is closed. A line between cells is drawn where the numbers, taken
as even slopes, pass nought.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Edge = tuple[int, int, int]  # row, column, and 0 for the edge to the right, 1 for the edge below
# Corners of a square: 1 left top, 2 right top, 4 right bottom, 8 left bottom. Its sides: 0 top, 1 right, 2 bottom,
# 3 left. Lines lead from side to side with what is above on their right; saddles keep their parts apart.
LINES = {
    1: ((0, 3),), 2: ((1, 0),), 3: ((1, 3),), 4: ((2, 1),), 5: ((0, 3), (2, 1)), 6: ((2, 0),), 7: ((2, 3),),
    8: ((3, 2),), 9: ((0, 2),), 10: ((1, 0), (3, 2)), 11: ((1, 2),), 12: ((3, 1),), 13: ((0, 1),), 14: ((3, 0),),
}  # fmt: skip
STRAIGHT = 0.02  # of a cell: a corner closer to the line of its neighbours is left out
MIN_AREA_CELLS = 1.0  # cells: an outline around less is left out


def outlines(grid: NDArray[np.float32]) -> list[NDArray[np.float64]]:
    """Rings [n, 2] of x and y in cells, 0 to the grid's sides, the one around most first.

    Args:
        grid: [h, w], the number of each cell at its centre.
    """
    framed = np.pad(grid.astype(np.float64), 1, constant_values=-1.0)
    framed[framed == 0] = -1e-9
    above = framed > 0
    kinds = above[:-1, :-1] + 2 * above[:-1, 1:] + 4 * above[1:, 1:] + 8 * above[1:, :-1]
    following: dict[Edge, Edge] = {}
    for row, column in np.argwhere((kinds > 0) & (kinds < 15)).tolist():
        sides = ((row, column, 0), (row, column + 1, 1), (row + 1, column, 0), (row, column, 1))
        for start, end in LINES[int(kinds[row, column])]:
            following[sides[start]] = sides[end]
    rings = []
    while following:
        at = next(iter(following))
        ring = []
        while at in following:
            ring.append(_crossing(framed, at))
            at = following.pop(at)
        rings.append(_corners((np.array(ring) - 0.5).clip(0, grid.shape[::-1])))
    sized = sorted(((abs(area(ring)), index) for index, ring in enumerate(rings)), reverse=True)
    return [rings[index] for size, index in sized if size >= MIN_AREA_CELLS]


def area(ring: NDArray[np.float64]) -> float:
    """Signed area of a ring [n, 2]: above nought where it runs clockwise as seen on a picture."""
    x, y = ring.T
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)


def _crossing(framed: NDArray[np.float64], edge: Edge) -> tuple[float, float]:
    row, column, down = edge
    first, second = framed[row, column], framed[row + down, column + 1 - down]
    share = float(first / (first - second))
    return (column, row + share) if down else (column + share, row)


def _corners(ring: NDArray[np.float64]) -> NDArray[np.float64]:
    """Drop the points that are on the line between their neighbours."""
    before, after = np.roll(ring, 1, 0), np.roll(ring, -1, 0)
    along, offset = after - before, ring - before
    far = np.abs(along[:, 0] * offset[:, 1] - along[:, 1] * offset[:, 0]) / np.maximum(np.hypot(*along.T), 1e-9)
    bent = ring[far > STRAIGHT]
    return bent if len(bent) >= 3 else ring
