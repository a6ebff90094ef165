"""Masks of objects found on tiles, as logits on cells of the whole image, put together from parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

NOTHING = -4.0  # the logit of a cell that no part of an object lies on

Sides = tuple[float, float, float, float]  # x0 y0 x1 y1 in pixels of the image


@dataclass(frozen=True)
class Patch:
    """The part of a mask's logits [h, w] around its object: cells of `cell` pixels from `left`, `top` of the image on.

    Tiles begin where cells do, so the cells of all tiles are those of the image.
    """

    logits: np.ndarray
    left: int
    top: int
    cell: float

    def within(self, sides: Sides) -> Sides:
        """Return the position of a part of the image in the logits, in cells, clipped at their edges."""
        height, width = self.logits.shape
        x0, x1 = (min(max(side / self.cell - self.left, 0.0), float(width)) for side in sides[::2])
        y0, y1 = (min(max(side / self.cell - self.top, 0.0), float(height)) for side in sides[1::2])
        return x0, y0, x1, y1

    def drawn(self, sides: tuple[int, int, int, int]) -> np.ndarray:
        """Which pixels [h, w] bool of a part of the image the mask covers."""
        size, within = (sides[2] - sides[0], sides[3] - sides[1]), self.within(sides)
        if min(size) <= 0 or within[0] >= within[2] or within[1] >= within[3]:
            return np.zeros((max(size[1], 0), max(size[0], 0)), bool)
        image = Image.fromarray(self.logits)
        return np.asarray(image.resize(size, Image.Resampling.BILINEAR, box=within)) > 0


def patch(
    shares: np.ndarray, prototypes: np.ndarray, box: np.ndarray, corner: tuple[float, float], cell: float
) -> Patch:
    """The mask of an object of a tile: the sum of the tile's prototypes [K, h, w] by its shares [K], around its box.

    Args:
        box, corner: [4] xyxy, and left and top of the tile, in the image's pixels.
    """
    rows, columns = prototypes.shape[1:]
    x0, y0, x1, y1 = (float(box[side] - corner[side % 2]) / cell for side in range(4))
    first, last = min(max(int(x0) - 1, 0), columns - 1), max(min(int(np.ceil(x1)) + 1, columns), 1)
    upper, lower = min(max(int(y0) - 1, 0), rows - 1), max(min(int(np.ceil(y1)) + 1, rows), 1)
    logits = np.tensordot(shares, prototypes[:, upper:lower, first:last], 1)
    left, top = round(corner[0] / cell) + first, round(corner[1] / cell) + upper
    return Patch(np.ascontiguousarray(logits, np.float32), left, top, cell)


def together(parts: Sequence[Patch], boxes: np.ndarray) -> Patch:
    """Return one mask where any of its parts is set inside its own box [len(parts), 4]; a single part is unchanged."""
    if len(parts) == 1:
        return parts[0]
    left, top = min(part.left for part in parts), min(part.top for part in parts)
    right = max(part.left + part.logits.shape[1] for part in parts)
    below = max(part.top + part.logits.shape[0] for part in parts)
    combined = np.full((below - top, right - left), NOTHING, np.float32)
    for part, (x0, y0, x1, y1) in zip(parts, boxes, strict=True):
        height, width = part.logits.shape
        across = (np.arange(width) + part.left + 0.5) * part.cell
        down = (np.arange(height) + part.top + 0.5) * part.cell
        inside = ((down >= y0) & (down <= y1))[:, None] & (across >= x0) & (across <= x1)
        own = np.where(inside, part.logits, -np.abs(part.logits))
        upon = combined[part.top - top : part.top - top + height, part.left - left : part.left - left + width]
        np.maximum(upon, own, out=upon)
    return Patch(combined, left, top, parts[0].cell)
