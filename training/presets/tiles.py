"""Tiles: parts of large images at their own size, to learn from and to look at (Akyon et al. 2022: SAHI).

Images are cached in blocks at their own size, of which any part can be read. Learning sees a random window of a region
around a tile; scoring looks at all tiles of an image, which overlap, and puts the answers together as services and
evaluations do (tiling/).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import data, image_cache, points
from .run import Refused
from .tiling.grid import grid

REACH = 1.5  # side of a region to that of a tile; sides of tiles are multiples of 16, so this is whole
MAX_TILES = 5000  # tiles of an image
EMPTY = 0.15  # share of the regions to learn from that show no object


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
    version: data.Version, cache: Path, read_array: Callable[[int], np.ndarray], *, name: str, side: int, channels: int,
    fill: int = image_cache.GREY_FILL,
) -> Blocks:  # fmt: skip
    """Return the blocks of all images, created where they are missing; each image is read once.

    Args:
        read_array: returns the array [H, W, C] of the image at a row.
        name: says what the arrays are and all that they depend on beside the images.
    """
    sizes = [(image.width, image.height) for image in version.images]
    across = [-(-width // side) for width, _ in sizes]
    counts = [over * -(-height // side) for over, (_, height) in zip(across, sizes, strict=True)]
    first = np.concatenate([[0], np.cumsum(counts)]).tolist()
    of = np.repeat(np.arange(len(sizes)), counts)
    content = "\n".join(f"{i.path} {i.sha256} {i.width} {i.height}" for i in version.images)
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    arrays = image_cache.Shared(read_array)

    def block(number: int) -> np.ndarray:
        row = int(of[number])
        down, over = divmod(number - first[row], across[row])
        part = arrays(row)[down * side : (down + 1) * side, over * side : (over + 1) * side]
        padded = np.full((side, side, channels), fill, np.uint8)
        padded[: part.shape[0], : part.shape[1]] = part
        return padded

    name = f"{name}{image_cache.FORMAT_VERSION}-{digest}-{side}"
    cached = image_cache.open_rows(cache, name, (len(of), side, side, channels), block)
    return Blocks(cached, sizes, first, across, side, fill)


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
        parts: a tile shows an object of which any part lies on it, not only one whose middle does.
    """

    def __init__(
        self,
        version: data.Version,
        boxes: list[np.ndarray],
        side: int,
        overlap: float,
        cache: Path,
        *,
        parts: bool = False,
    ) -> None:
        self.parts = parts
        self.sizes, self.boxes = [(image.width, image.height) for image in version.images], boxes
        self.side, self.overlap = side, overlap
        largest_count = max((len(self.corners(row)) for row in range(len(self.sizes))), default=0)
        if largest_count > MAX_TILES:
            raise Refused(
                f"An image has {largest_count} tiles of {side} pixels, more than {MAX_TILES}: choose a larger tile "
                "or a smaller tile_overlap."
            )

        def read_image(row: int) -> np.ndarray:
            return np.asarray(image_cache.opened(version.folder / "images" / version.images[row].path, "RGB"))

        self.blocks = open_or_make(version, cache, read_image, name="blocks", side=side, channels=3)

    def corners(self, row: int) -> list[tuple[int, int]]:
        """Return left and top of the tiles of an image."""
        return grid(*self.sizes[row], (self.side, self.side), self.overlap)

    def count(self, rows: Sequence[int]) -> int:
        """How many tiles these images have together."""
        return sum(len(self.corners(row)) for row in rows)

    def busiest(self, row: int) -> tuple[int, int]:
        """Return the tile of an image with the most objects."""
        return max(self.corners(row), key=lambda corner: int(self._shown(row, corner).sum()))

    def pixels(self, row: int, places: Sequence[tuple[int, int]]) -> np.ndarray:
        """Tiles [N, H, W, 3] of an image."""
        return np.stack([self.blocks.part(row, left, top, self.side, self.side) for left, top in places])

    def looks(self, row: int, at_once: int) -> Iterator[tuple[list[tuple[int, int]], np.ndarray]]:
        """All tiles of an image, so many at a time: their places, and their pixels [N, H, W, 3]."""
        places = self.corners(row)
        for start in range(0, len(places), at_once):
            some = places[start : start + at_once]
            yield some, self.pixels(row, some)

    def regions(self, rows: Sequence[int]) -> list[Region]:
        """Return the regions to learn from: around each tile with an object, and around a few without any."""
        busy: list[Region] = []
        empty: list[Region] = []
        for row in rows:
            for corner in self.corners(row):
                (busy if self._shown(row, corner).any() else empty).append(self._around(row, corner))
        max_empty = math.ceil(len(busy) * EMPTY / (1 - EMPTY))
        sampled = (
            points.sample(list(range(len(empty))), min(1.0, max_empty / max(len(empty), 1)), least=1) if empty else []
        )
        return [*busy, *(empty[index] for index in sampled)]

    def around(self, region: Region, blocks: Blocks | None = None) -> np.ndarray:
        """The pixels [H, W, 3] of a region, or what other blocks hold of it."""
        side = round(REACH * self.side)
        return (blocks or self.blocks).part(region.row, region.left, region.top, side, side)

    def _shown(self, row: int, corner: tuple[int, int]) -> np.ndarray:
        """Return which objects of an image a tile shows, [K]."""
        if self.parts:
            sides = (self.boxes[row].reshape(-1, 2, 2) - np.array(corner)).clip(0, self.side)
            return np.asarray((sides[:, 1] > sides[:, 0]).all(1))
        middles = (self.boxes[row][:, :2] + self.boxes[row][:, 2:]) / 2 - np.array(corner)
        return np.asarray(((middles >= 0) & (middles < self.side)).all(1))

    def _around(self, row: int, corner: tuple[int, int]) -> Region:
        """Return the region around a tile, inside its image if the image is large enough."""
        side, more = round(REACH * self.side), round((REACH - 1) * self.side / 2)
        left, top = (
            min(max(at - more, 0), length - side) if length >= side else (length - side) // 2
            for at, length in zip(corner, self.sizes[row], strict=True)
        )
        return Region(row, left, top)
