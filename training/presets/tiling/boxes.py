"""Objects found on tiles that overlap, put together: each of them once, with one box."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .masks import Patch, together

AGREE = 0.5  # two answers whose overlap is more than this, where both tiles look, are of one object
EDGE = 3.0  # px: a box so near the edge of its tile is cut by it
MAX_BOXES = (
    600  # answers for each part of an image as large as a tile; of more the likeliest count, however tiles overlap
)
WEAK = 0.5  # of the best score: parts of an object that score lower do not make it larger


class Joined(NamedTuple):
    """Objects of an image: boxes [M, 4] in its pixels, scores [M, C], and the mask of each where there are masks."""

    boxes: np.ndarray
    scores: np.ndarray
    masks: list[Patch]


class Parts:
    """What is found on the tiles of an image, one after the other.

    Args:
        size, tile: width and height of the image and of a tile.
    """

    def __init__(self, size: tuple[int, int], tile: tuple[int, int]) -> None:
        self.size, self.tile = size, tile
        self._corners: list[tuple[float, float]] = []
        self._found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._masks: list[Patch] = []

    def add(
        self,
        corner: tuple[float, float],
        boxes: np.ndarray,
        scores: np.ndarray,
        classes: np.ndarray,
        masks: Sequence[Patch] = (),
    ) -> None:
        """Add the answers [K] to the tile at `corner` (left, top); their boxes [K, 4] are in the image's pixels."""
        self._corners.append(corner)
        self._found.append((boxes, scores, classes))
        self._masks += masks

    def joined(self, classes: int) -> Joined:
        """Return the objects of the image, for this number of classes."""
        corners = np.array(self._corners, np.float32).reshape(-1, 2)
        rects = np.concatenate([corners, np.minimum(corners + np.array(self.tile), self.size)], 1).astype(np.float32)
        nothing = np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64)
        boxes, scores, kinds = (np.concatenate(each) for each in zip(nothing, *self._found, strict=True))
        of = np.repeat(np.arange(len(self._found)), [len(own) for own, _, _ in self._found])
        max_boxes = MAX_BOXES * math.prod(-(-size // side) for size, side in zip(self.size, self.tile, strict=True))
        likeliest = np.sort(np.argsort(-scores, kind="stable")[:max_boxes])
        boxes, scores, kinds, of = boxes[likeliest], scores[likeliest], kinds[likeliest], of[likeliest]
        own = boxes.copy()
        numbers, makes = merged(boxes, scores, kinds, of, rects, self.size)
        count = int(numbers.max()) + 1 if len(numbers) else 0
        objects, likely = np.zeros((count, 4), np.float32), np.zeros((count, classes), np.float32)
        objects[numbers] = boxes
        np.maximum.at(likely, (numbers, kinds), scores)
        there = (objects[:, 2:] > objects[:, :2]).all(1)  # not what was seen in the grey beside a small image
        masks: list[Patch] = []
        if self._masks:
            members: list[list[int]] = [[] for _ in range(count)]
            for row in np.flatnonzero(makes).tolist():
                members[numbers[row]].append(row)
            masks = [
                together([self._masks[likeliest[row]] for row in members[number]], own[members[number]])
                for number in np.flatnonzero(there).tolist()
            ]
        return Joined(objects[there], likely[there], masks)


def merged(
    boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray, of: np.ndarray, tiles: np.ndarray, size: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the object number of each box, from 0, and which boxes [M] bool determine the box of their object.

    `boxes` are changed: those of one object become its box. Boxes of one class from two tiles are of one object where
    they agree in the part that both tiles show: their intersection over union, or over the smaller one where a tile's
    edge cuts one of them. The box of an object is that of its best answer that no edge cuts; where all are cut, it is
    around them.

    Args:
        boxes, scores, classes, of: [M, 4] in pixels of the image, [M], [M], and the tile of each [M].
        tiles: [T, 4] xyxy, each cut at the image's edge.
        size: width and height of the image.
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
    for index, first in enumerate(answering):
        later = around[index + 1 :]
        low, high = np.maximum(around[index, :2], later[:, :2]), np.minimum(around[index, 2:], later[:, 2:])
        for near in np.flatnonzero((high > low).all(1)) + index + 1:  # boxes of the others cannot meet
            pair = tiles[[first, answering[near]]]
            common = np.concatenate([pair[:, :2].max(0), pair[:, 2:].min(0)])
            for left_box, right_box in _pairs(boxes, classes, cut, own[index], own[near], common):
                if owner[right_box] != owner[left_box]:  # others may have brought them together
                    owner[owner == owner[right_box]] = owner[left_box]
    numbers = np.unique(owner, return_inverse=True)[1].reshape(-1)
    makes = np.ones(len(boxes), bool)
    for number in np.flatnonzero(np.bincount(numbers) > 1) if len(numbers) else ():
        members = np.flatnonzero(numbers == number)
        uncut = members[~cut[members]]
        if len(uncut):
            strong = uncut[[scores[uncut].argmax()]]
        else:
            strong = members[scores[members] >= WEAK * scores[members].max()]
        makes[members] = False
        makes[strong] = True
        boxes[members] = np.concatenate([boxes[strong, :2].min(0), boxes[strong, 2:].max(0)])
    return np.asarray(numbers, np.int64), makes


def _pairs(
    boxes: np.ndarray, classes: np.ndarray, cut: np.ndarray, first: np.ndarray, second: np.ndarray, common: np.ndarray
) -> list[tuple[int, int]]:
    """Return index pairs of the boxes of two tiles that agree in the common area; each has at most one, the best."""
    first_boxes, second_boxes = (
        np.clip(boxes[own], np.tile(common[:2], 2), np.tile(common[2:], 2)) for own in (first, second)
    )
    sides = np.minimum(first_boxes[:, None, 2:], second_boxes[None, :, 2:]) - np.maximum(
        first_boxes[:, None, :2], second_boxes[None, :, :2]
    )
    both = sides.clip(0).prod(2)
    areas = [(own[:, 2:] - own[:, :2]).prod(1) for own in (first_boxes, second_boxes)]
    smaller = np.minimum(areas[0][:, None], areas[1])
    either = cut[first][:, None] | cut[second]
    of = np.where(either, smaller, areas[0][:, None] + areas[1] - both)
    share = np.where(classes[first][:, None] == classes[second], both / np.maximum(of, 1e-6), 0)
    rows, columns = np.nonzero(share > AGREE)
    best = np.argsort(-share[rows, columns], kind="stable")
    partners: dict[int, int] = {}
    taken: set[int] = set()
    for row, column in zip(rows[best].tolist(), columns[best].tolist(), strict=True):
        if row not in partners and column not in taken:
            partners[row] = column
            taken.add(column)
    return [(int(first[row]), int(second[column])) for row, column in partners.items()]
