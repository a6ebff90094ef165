"""The logits of tiles that overlap, blended, as the class of each pixel of an image."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image

from .grid import STEP


class Blend:
    """Takes the logits of an image's tiles, in the order of `grid`, and draws the map of their likeliest channels.

    Where tiles overlap their logits are averaged, those near a tile's edge with less weight: a tile sees little around
    what lies there. What no later tile shows is drawn at once, so only a band as high as a tile is kept, on the cells
    of the logits, which may be coarser than pixels.

    Args:
        size, tile: width and height of the image and of a tile.
        draw: is given the top row of a strip of the image and its channels [h, W], from above to below.
    """

    def __init__(self, size: tuple[int, int], tile: tuple[int, int], draw: Callable[[int, np.ndarray], None]) -> None:
        self.size, self.tile, self.draw = size, tile, draw
        self.cell = 1
        self._sums = np.zeros((0, 0, 0), np.float32)  # of the logits of the band, each by its weight
        self._weights = self._ramp = np.zeros((0, 0), np.float32)
        self._first = self._drawn = 0  # row of cells that the band begins with; rows of pixels that are drawn
        self._before: np.ndarray | None = None  # the last row of cells above the band
        self._likely, self._counts = np.zeros(0), np.zeros(0, np.int64)

    def add(self, corner: tuple[int, int], logits: np.ndarray) -> None:
        """Add the logits [C, h, w] of the tile at `corner` (left, top)."""
        logits, cell = _on_cells(logits, self.tile)
        if not self._sums.size:
            self._allocate(logits.shape, cell)
        left, top = corner[0] // self.cell, corner[1] // self.cell
        if top > self._first:
            self._finish(top - self._first)
        width = min(logits.shape[2], self._sums.shape[2] - left)
        own = self._ramp[:, :width]
        self._sums[:, :, left : left + width] += logits[:, :, :width] * own
        self._weights[:, left : left + width] += own

    def end(self) -> dict[int, float]:
        """Draw the remaining rows; return the mean likelihood of each channel where it is the most likely."""
        self._finish(-(-self.size[1] // self.cell) - self._first, last=True)
        return {
            int(channel): float(self._likely[channel] / self._counts[channel])
            for channel in np.flatnonzero(self._counts)
        }

    def _allocate(self, shape: tuple[int, ...], cell: int) -> None:
        self.cell = cell
        channels, rows, columns = shape
        across = -(-self.size[0] // cell)
        self._sums, self._weights = np.zeros((channels, rows, across), np.float32), np.zeros((rows, across), np.float32)
        self._ramp = np.outer(_ramp(rows), _ramp(columns))
        self._likely, self._counts = np.zeros(channels), np.zeros(channels, np.int64)

    def _finish(self, rows: int, *, last: bool = False) -> None:
        """Draw the first rows of cells of the band, and let the others move up."""
        done = self._sums[:, :rows] / self._weights[:rows]
        best = done.argmax(0)
        peak = done.max(0)
        sure = 1 / np.exp(done - peak).sum(0)
        self._counts += np.bincount(best.ravel(), minlength=len(done))
        self._likely += np.bincount(best.ravel(), sure.ravel(), minlength=len(done))
        self._enlarge(done, last=last)
        self._first += rows
        for band in (self._sums.swapaxes(0, 1), self._weights):
            band[: len(band) - rows] = band[rows:].copy()
            band[len(band) - rows :] = 0
        self._before = done[:, -1:].copy()  # no more than the row

    def _enlarge(self, done: np.ndarray, *, last: bool) -> None:
        """Draw the rows of pixels between complete rows of cells: the previous ones and these."""
        cells = done if self._before is None else np.concatenate([self._before, done], 1)
        base = self._first + done.shape[1] - cells.shape[1]
        until = int((self._first + done.shape[1] - 0.5) * self.cell + 0.5)
        width, until = self.size[0], self.size[1] if last else min(until, self.size[1])
        box = (0.0, self._drawn / self.cell - base, width / self.cell, until / self.cell - base)
        best = np.full((until - self._drawn, width), -np.inf, np.float32)
        channels = np.zeros(best.shape, np.uint16)
        for channel in np.unique(cells.argmax(0)):  # what is likeliest on no cell at all is left out between them
            coarse = Image.fromarray(np.ascontiguousarray(cells[channel]))
            own = np.asarray(coarse.resize(best.shape[::-1], Image.Resampling.BILINEAR, box=box))
            wins = own > best
            best[wins], channels[wins] = own[wins], channel
        self.draw(self._drawn, channels)
        self._drawn = until


def _ramp(length: int) -> np.ndarray:
    """Weights that rise to the middle of a tile and fall behind it."""
    return np.minimum(np.arange(length) + 0.5, length - 0.5 - np.arange(length)).astype(np.float32)


def _on_cells(logits: np.ndarray, tile: tuple[int, int]) -> tuple[np.ndarray, int]:
    """Logits on cells that all tiles share, and the side of a cell in pixels: as they are, or enlarged to such."""
    rows, columns = logits.shape[1:]
    cell = tile[0] // columns
    if cell and not STEP % cell and (columns * cell, rows * cell) == tile:
        return logits, cell
    cell = 1 if tile[0] % STEP or tile[1] % STEP else STEP
    size = (tile[0] // cell, tile[1] // cell)
    enlarged = [Image.fromarray(np.ascontiguousarray(own)).resize(size, Image.Resampling.BILINEAR) for own in logits]
    return np.stack([np.asarray(own, np.float32) for own in enlarged]), cell
