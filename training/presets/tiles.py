"""Tiles: parts of large images at their own size, to learn from and to look at (Akyon et al. 2022: SAHI).

Images are cached in blocks at their own size, of which any part can be read. Learning sees a random window of a region
around a tile; evaluations and services look at all tiles of an image, which overlap, and put the answers together. The
arithmetic of that is the same as in inference/server/tiles.py; a test holds the two together.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import data, image_cache, points
from .run import Refused

REACH = 1.5  # side of a region to that of a tile; sides of tiles are multiples of 16, so this is whole
MOST = 5000  # tiles of an image
EMPTY = 0.15  # share of the regions to learn from that show no object
AGREE = 0.5  # two answers whose overlap is more than this, where both tiles look, are of one object
EDGE = 3.0  # px: a box so near the edge of its tile is cut by it
WEAK = 0.5  # of the best score: parts of an object that score lower do not make it larger


def grid(width: int, height: int, tile: tuple[int, int], overlap: float) -> list[tuple[int, int]]:
    """Left and top of the tiles that cover an image, row by row; neighbours share at least `overlap` of a side.

    Args:
        tile: width and height in pixels; an image that is smaller has a single tile, which reaches beyond it.
    """
    across, down = (_starts(size, side, overlap) for size, side in zip((width, height), tile, strict=True))
    return [(left, top) for top in down for left in across]


def _starts(size: int, side: int, overlap: float) -> list[int]:
    if size <= side:
        return [0]
    steps = math.ceil((size - side) / max(1.0, side * (1 - overlap)))
    return [round(step * (size - side) / steps) for step in range(steps + 1)]


@dataclass(frozen=True)
class Blocks:
    """Arrays of all images at their own size, in square blocks.

    Args:
        first, across: number of the first block of each image, and how many lie side by side in it.
        fill: what lies outside an image.
    """

    cache: image_cache.ImageCache
    sizes: Sequence[tuple[int, int]]
    first: list[int]
    across: list[int]
    side: int
    fill: int

    def part(self, row: int, left: int, top: int, width: int, height: int) -> np.ndarray:
        """A part [height, width, C] of the image at `row`; it may reach beyond the image."""
        out = np.full((height, width, self.cache.shape[3]), self.fill, np.uint8)
        x0, y0 = max(left, 0), max(top, 0)
        x1, y1 = min(left + width, self.sizes[row][0]), min(top + height, self.sizes[row][1])
        for down in range(y0 // self.side, -(-max(y1, y0) // self.side)):
            for over in range(x0 // self.side, -(-max(x1, x0) // self.side)):
                block = self.cache.rows([self.first[row] + down * self.across[row] + over])[0]
                bx, by = over * self.side, down * self.side
                sx, sy, ex, ey = max(x0, bx), max(y0, by), min(x1, bx + self.side), min(y1, by + self.side)
                out[sy - top : ey - top, sx - left : ex - left] = block[sy - by : ey - by, sx - bx : ex - bx]
        return out


def open_or_make(
    version: data.Version, cache: Path, whole: Callable[[int], np.ndarray], *, name: str, side: int, channels: int,
    fill: int = image_cache.GREY_FILL,
) -> Blocks:  # fmt: skip
    """The blocks of all images, made first where they are missing; each image is read once.

    Args:
        whole: the array [H, W, C] of the image at a row.
        name: says what the arrays are and all that they depend on beside the images.
    """
    sizes = [(image.width, image.height) for image in version.images]
    across = [-(-width // side) for width, _ in sizes]
    counts = [over * -(-height // side) for over, (_, height) in zip(across, sizes, strict=True)]
    first = np.concatenate([[0], np.cumsum(counts)]).tolist()
    of = np.repeat(np.arange(len(sizes)), counts)
    content = "\n".join(f"{i.path} {i.sha256} {i.width} {i.height}" for i in version.images)
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    arrays = image_cache.Shared(whole)

    def block(number: int) -> np.ndarray:
        row = int(of[number])
        down, over = divmod(number - first[row], across[row])
        part = arrays(row)[down * side : (down + 1) * side, over * side : (over + 1) * side]
        padded = np.full((side, side, channels), fill, np.uint8)
        padded[: part.shape[0], : part.shape[1]] = part
        return padded

    name = f"{name}{image_cache.FORMAT_VERSION}-{digest}-{side}"
    kept = image_cache.kept(cache, name, (len(of), side, side, channels), block)
    return Blocks(kept, sizes, first, across, side, fill)


@dataclass(frozen=True)
class Region:
    """The part of an image that is learned from, from `left`, `top` on; the whole one where there are no tiles."""

    row: int
    left: int = 0
    top: int = 0

    def inside(self, boxes: np.ndarray) -> np.ndarray:
        """Boxes [K, 4] of the image in pixels of the region."""
        return np.asarray(boxes - np.array([self.left, self.top] * 2, np.float32), np.float32)


class Tiles:
    """What is learned from and looked at of large images.

    Args:
        boxes: of each image of the version, [K, 4] in its pixels.
        side, overlap: of a tile in pixels, and the share of it that neighbours have in common.
    """

    def __init__(self, version: data.Version, boxes: list[np.ndarray], side: int, overlap: float, cache: Path) -> None:
        self.sizes, self.boxes = [(image.width, image.height) for image in version.images], boxes
        self.side, self.overlap = side, overlap
        most = max((len(self.of(row)) for row in range(len(self.sizes))), default=0)
        if most > MOST:
            raise Refused(f"An image has {most} tiles of {side} pixels, more than {MOST}: choose a larger tile or a "
                          "smaller tile_overlap.")  # fmt: skip

        def whole(row: int) -> np.ndarray:
            return np.asarray(image_cache.opened(version.folder / "images" / version.images[row].path, "RGB"))

        self.blocks = open_or_make(version, cache, whole, name="blocks", side=side, channels=3)

    def of(self, row: int) -> list[tuple[int, int]]:
        """Left and top of the tiles of an image."""
        return grid(*self.sizes[row], (self.side, self.side), self.overlap)

    def count(self, rows: Sequence[int]) -> int:
        """How many tiles these images have together."""
        return sum(len(self.of(row)) for row in rows)

    def busiest(self, row: int) -> tuple[int, int]:
        """The tile of an image that shows most objects."""
        return max(self.of(row), key=lambda place: int(self._shown(row, place).sum()))

    def pixels(self, row: int, places: Sequence[tuple[int, int]]) -> np.ndarray:
        """Tiles [N, H, W, 3] of an image."""
        return np.stack([self.blocks.part(row, left, top, self.side, self.side) for left, top in places])

    def regions(self, rows: Sequence[int]) -> list[Region]:
        """What is learned from: a region around each tile that shows an object, and around a few that show none."""
        busy: list[Region] = []
        empty: list[Region] = []
        for row in rows:
            for place in self.of(row):
                (busy if self._shown(row, place).any() else empty).append(self._around(row, place))
        most = math.ceil(len(busy) * EMPTY / (1 - EMPTY))
        few = points.sample(list(range(len(empty))), min(1.0, most / max(len(empty), 1)), least=1) if empty else []
        return [*busy, *(empty[place] for place in few)]

    def around(self, region: Region) -> np.ndarray:
        """The pixels [H, W, 3] of a region."""
        side = round(REACH * self.side)
        return self.blocks.part(region.row, region.left, region.top, side, side)

    def _shown(self, row: int, place: tuple[int, int]) -> np.ndarray:
        """Which objects of an image have their middle on a tile, [K]."""
        middles = (self.boxes[row][:, :2] + self.boxes[row][:, 2:]) / 2 - np.array(place)
        return np.asarray(((middles >= 0) & (middles < self.side)).all(1))

    def _around(self, row: int, place: tuple[int, int]) -> Region:
        """The region around a tile, inside its image where that is large enough."""
        side, more = round(REACH * self.side), round((REACH - 1) * self.side / 2)
        left, top = (
            min(max(at - more, 0), length - side) if length >= side else (length - side) // 2
            for at, length in zip(place, self.sizes[row], strict=True)
        )
        return Region(row, left, top)

    def joined(
        self, row: int, boxes: list[np.ndarray], scores: list[np.ndarray], kept: Callable[..., Any]
    ) -> list[np.ndarray]:
        """Boxes [M, 4] and scores [M, C] of an image, from those of its tiles in their own pixels.

        Args:
            boxes, scores: [P, 4] and [P, C] of each tile.
            kept: of boxes and scores → for each class its index and the rows that stay after suppression.
        """
        places = self.of(row)
        corners = np.array(places, np.float32)
        found, given, classes, of = [], [], [], []
        for tile, (own, sure) in enumerate(zip(boxes, scores, strict=True)):
            for index, rows in kept(own, sure):
                found.append(own[rows] + np.tile(corners[tile], 2))
                given.append(sure[rows, index])
                classes.append(np.full(len(rows), index))
                of.append(np.full(len(rows), tile))
        every, sure, kinds = np.concatenate(found), np.concatenate(given), np.concatenate(classes)
        rects = np.concatenate([corners, np.minimum(corners + self.side, np.array(self.sizes[row], np.float32))], 1)
        numbers = merged(every, sure, kinds, np.concatenate(of), rects, self.sizes[row])
        count = int(numbers.max()) + 1 if len(numbers) else 0
        whole, likely = np.zeros((count, 4), np.float32), np.zeros((count, scores[0].shape[1]), np.float32)
        whole[numbers] = every
        np.maximum.at(likely, (numbers, kinds), sure)
        there = (whole[:, 2:] > whole[:, :2]).all(1)  # not what was seen in the grey beside a small image
        return [whole[there], likely[there]]


def merged(
    boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray, of: np.ndarray, tiles: np.ndarray, size: tuple[int, int]
) -> np.ndarray:
    """Which object each box is of, as numbers from 0; `boxes` are changed: those of one object become its box.

    Boxes of one class from two tiles are of one object where they agree in the part that both tiles show: their
    intersection over union, or over the smaller one where a tile's edge cuts one of them. The box of an object is that
    of its best answer that no edge cuts; where all are cut, it is around them.

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
    boxes: np.ndarray, classes: np.ndarray, cut: np.ndarray, first: np.ndarray, second: np.ndarray, common: np.ndarray
) -> list[tuple[int, int]]:
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
