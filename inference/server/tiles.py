"""Large pictures cut into tiles that overlap, and what a detector found on them put together again.

Sliced inference (Akyon et al. 2022): a model that has learned from tiles at a picture's own size looks at tiles of a
new one. The same arithmetic as training/presets/tiles.py, which stays where a training finds it; a test holds the two
together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
AGREE = 0.5  # two answers whose overlap is more than this, where both tiles look, are of one object
EDGE = 3.0  # px: a box so near the edge of its tile is cut by it
WEAK = 0.5  # of the best score: parts of an object that score lower do not make it larger


def grid(width: int, height: int, tile: tuple[int, int], overlap: float) -> list[tuple[int, int]]:
    """Left and top of the tiles that cover a picture, row by row; neighbours share at least `overlap` of a side.

    Args:
        tile: width and height in pixels of the picture; one that is smaller has a single tile, which reaches beyond it.
    """
    across, down = (_starts(size, side, overlap) for size, side in zip((width, height), tile, strict=True))
    return [(left, top) for top in down for left in across]


def _starts(size: int, side: int, overlap: float) -> list[int]:
    if size <= side:
        return [0]
    steps = math.ceil((size - side) / max(1.0, side * (1 - overlap)))
    return [round(step * (size - side) / steps) for step in range(steps + 1)]


def merged(boxes: Floats, scores: Floats, classes: Ints, of: Ints, tiles: Floats, size: tuple[int, int]) -> Ints:
    """Which object each box is of, as numbers from 0; `boxes` are changed: those of one object become its box.

    Boxes of one class from two tiles are of one object where they agree in the part that both tiles show: their
    intersection over union, or over the smaller one where a tile's edge cuts one of them. The box of an object is that
    of its best answer that no edge cuts; where all are cut, it is around them.

    Args:
        boxes, scores, classes, of: [M, 4] in pixels of the picture, [M], [M], and the tile of each [M].
        tiles: [T, 4] xyxy, each cut at the picture's edge.
        size: width and height of the picture.
    """
    corners = tiles[of]
    np.clip(boxes[:, :2], corners[:, :2], corners[:, 2:], out=boxes[:, :2])
    np.clip(boxes[:, 2:], corners[:, :2], corners[:, 2:], out=boxes[:, 2:])
    inner = np.concatenate([tiles[:, :2] > 0, tiles[:, 2:] < np.array(size)], 1)[of]
    cut = (inner & (np.abs(boxes - corners) < EDGE)).any(1)
    owner = np.arange(len(boxes))
    answering = np.unique(of)
    own = [np.flatnonzero(of == tile) for tile in answering]
    around = np.array([[*boxes[each, :2].min(0), *boxes[each, 2:].max(0)] for each in own]).reshape(-1, 4)
    for place, first in enumerate(answering):
        later = around[place + 1 :]
        low, high = np.maximum(around[place, :2], later[:, :2]), np.minimum(around[place, 2:], later[:, 2:])
        for near in np.flatnonzero((high > low).all(1)) + place + 1:  # boxes of the others cannot meet
            pair = tiles[[first, answering[near]]]
            common = np.concatenate([pair[:, :2].max(0), pair[:, 2:].min(0)])
            for one, other in _pairs(boxes, classes, cut, own[place], own[near], common):
                owner[owner == owner[other]] = owner[one]
    numbers = np.unique(owner, return_inverse=True)[1].reshape(-1)
    for number in np.flatnonzero(np.bincount(numbers) > 1) if len(numbers) else ():
        members = np.flatnonzero(numbers == number)
        whole = members[~cut[members]]
        if len(whole):
            boxes[members] = boxes[whole[scores[whole].argmax()]]
        else:
            strong = boxes[members[scores[members] >= WEAK * scores[members].max()]]
            boxes[members] = np.concatenate([strong[:, :2].min(0), strong[:, 2:].max(0)])
    return np.asarray(numbers, np.int64)


def _pairs(
    boxes: Floats, classes: Ints, cut: NDArray[np.bool_], first: Ints, second: Ints, common: Floats
) -> Sequence[tuple[int, int]]:
    """Places of the boxes of two tiles that agree in what both show; each has one partner at most, the best."""
    one, other = (np.clip(boxes[own], np.tile(common[:2], 2), np.tile(common[2:], 2)) for own in (first, second))
    sides = np.minimum(one[:, None, 2:], other[None, :, 2:]) - np.maximum(one[:, None, :2], other[None, :, :2])
    both = sides.clip(0).prod(2)
    areas = [(own[:, 2:] - own[:, :2]).prod(1) for own in (one, other)]
    smaller = np.minimum(areas[0][:, None], areas[1])
    either = cut[first][:, None] | cut[second]
    of = np.where(either, smaller, areas[0][:, None] + areas[1] - both)
    share = np.where(classes[first][:, None] == classes[second], both / np.maximum(of, 1e-6), 0)
    found: dict[int, int] = {}
    for row, column in sorted(np.argwhere(share > AGREE).tolist(), key=lambda place: -share[place[0], place[1]]):
        if row not in found and column not in found.values():
            found[row] = column
    return [(int(first[row]), int(second[column])) for row, column in found.items()]
