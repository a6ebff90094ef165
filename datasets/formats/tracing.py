"""Outlines of the pixels of a mask, exact to the pixel, holes included. numpy only.

An outline runs along the edges between pixels, so it covers exactly the pixels it was made of. A part with holes
becomes one ring that goes in and out on the same line (a bridge), which polygon readers fill as the part without them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Ring = list[float]
Vertex = tuple[int, int]

MAX_EDGES = 200_000  # of one class on one image; more is noise, and kept as runs
MAX_PARTS = 500
MAX_POINTS = 5_000  # of one part
_STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # right, down, left, up: turning right is +1


def outlines(pixels: np.ndarray) -> list[Ring] | None:
    """Return one ring per connected part of the set pixels, clockwise; None if they are too frayed for polygons.

    Parts that only touch at a corner are two.
    """
    edges = _edges(pixels)
    if edges is None:
        return None
    rings = _rings(edges)
    outer = [ring for ring in rings if _area(ring) > 0]
    holes = [ring for ring in rings if _area(ring) < 0]
    if len(outer) > MAX_PARTS or len(holes) > MAX_PARTS:
        return None
    owned: dict[int, list[list[Vertex]]] = {}
    outer.sort(key=_area)
    for hole in holes:
        inside = _beside(hole)
        owner = next(index for index, ring in enumerate(outer) if _contains(ring, *inside))
        owned.setdefault(owner, []).append(hole)
    bridged = [_bridged(ring, owned.get(index, [])) for index, ring in enumerate(outer)]
    if any(len(ring) > MAX_POINTS for ring in bridged):
        return None
    bridged.sort(key=lambda ring: (min(y for _x, y in ring), min(x for x, _y in ring)))
    return [[float(value) for vertex in ring for value in vertex] for ring in bridged]


def runs(pixels: np.ndarray) -> dict[str, Any]:
    """The set pixels as COCO's plain run lengths: column by column, background first."""
    flat = np.asarray(pixels, dtype=bool).flatten(order="F")
    changes = np.flatnonzero(np.diff(flat)) + 1
    bounds = np.concatenate(([0], changes, [flat.size]))
    counts = np.diff(bounds).tolist()
    return {"size": [int(side) for side in pixels.shape], "counts": [0, *counts] if flat.size and flat[0] else counts}


def _edges(pixels: np.ndarray) -> dict[Vertex, list[int]] | None:
    """Start of each unit edge between a set pixel (on its right) and one that is not → its directions."""
    framed = np.pad(np.asarray(pixels, dtype=bool), 1)
    inner = framed[1:-1, 1:-1]
    sides = (
        inner & ~framed[:-2, 1:-1],  # above: runs right, from the left top corner
        inner & ~framed[1:-1, 2:],  # on the right: runs down, from the right top corner
        inner & ~framed[2:, 1:-1],  # below: runs left, from the right bottom corner
        inner & ~framed[1:-1, :-2],  # on the left: runs up, from the left bottom corner
    )
    if sum(int(side.sum()) for side in sides) > MAX_EDGES:
        return None
    edges: dict[Vertex, list[int]] = {}
    for direction, (side, (dx, dy)) in enumerate(zip(sides, ((0, 0), (1, 0), (1, 1), (0, 1)), strict=True)):
        rows, columns = np.nonzero(side)
        for x, y in zip((columns + dx).tolist(), (rows + dy).tolist(), strict=True):
            edges.setdefault((x, y), []).append(direction)
    return edges


def _rings(edges: dict[Vertex, list[int]]) -> list[list[Vertex]]:
    """Closed outlines by their corners. Where two pixels touch at a corner the way stays with its own pixel."""
    rings = []
    while edges:
        start, directions = next(iter(edges.items()))
        direction = directions[0]
        at, came, ring = start, -1, []
        while True:
            leaving = edges[at]
            direction = leaving[0] if len(leaving) == 1 or came < 0 else _turn(came, leaving)
            leaving.remove(direction)
            if not leaving:
                del edges[at]
            if direction != came:
                ring.append(at)
            came = direction
            at = (at[0] + _STEPS[direction][0], at[1] + _STEPS[direction][1])
            if at == start and (at not in edges or (came + 1) % 4 not in edges[at]):
                break
        if _direction(ring[-1], ring[0]) == _direction(ring[0], ring[1]):  # began in the middle of a line
            ring.pop(0)
        rings.append(ring)
    return rings


def _turn(came: int, leaving: list[int]) -> int:
    right = (came + 1) % 4
    return right if right in leaving else leaving[0]


def _direction(a: Vertex, b: Vertex) -> tuple[int, int]:
    return (b[0] > a[0]) - (b[0] < a[0]), (b[1] > a[1]) - (b[1] < a[1])


def _area(ring: list[Vertex]) -> float:
    following = ring[1:] + ring[:1]
    return sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(ring, following, strict=True)) / 2


def _beside(hole: list[Vertex]) -> tuple[float, float]:
    """The middle of a set pixel at the hole's border: on the right of its first edge."""
    (x, y), (to_x, to_y) = hole[0], hole[1]
    dx, dy = _direction((x, y), (to_x, to_y))
    return x + dx / 2 - dy / 2, y + dy / 2 + dx / 2


def _contains(ring: list[Vertex], x: float, y: float) -> bool:
    inside = False
    following = ring[1:] + ring[:1]
    for (x0, y0), (_x1, y1) in zip(ring, following, strict=True):
        if (y0 > y) != (y1 > y) and x0 > x:  # only upright lines count
            inside = not inside
    return inside


def _bridged(ring: list[Vertex], holes: list[list[Vertex]]) -> list[Vertex]:
    """Join each hole to the ring by a horizontal line from the hole's leftmost corner to the next edge on its left."""
    joined = list(ring)
    for hole in sorted(holes, key=min):
        first = hole.index(min(hole))
        inner = hole[first:] + hole[:first]
        x, y = inner[0]
        best, position = -1, 0
        for index, (x0, y0) in enumerate(joined):
            x1, y1 = joined[(index + 1) % len(joined)]
            if x0 == x1 <= x and min(y0, y1) <= y <= max(y0, y1) and x0 > best:
                best, position = x0, index
        joined[position + 1 : position + 1] = [(best, y), *inner, (x, y), (best, y)]
    return joined
