"""Templates of gradient histograms, slid over a pyramid of the image: Dalal and Triggs 2005.

All of it is layers, so the exported model is one graph: image → histograms at each level → a convolution with the
templates of all classes → a score for each class at each place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .hog import BLOCK, Hog

AROUND = 1  # cells around an object that belong to its window, and around the image, so that edges have windows


@dataclass(frozen=True)
class Window:
    """What a template sees: an object of `wide` × `high` cells, with `AROUND` cells on each side."""

    cell: int  # pixels
    wide: int
    high: int

    @property
    def blocks(self) -> tuple[int, int]:
        """Rows and columns of blocks in a window."""
        return self.high + 2 * AROUND - 1, self.wide + 2 * AROUND - 1

    @property
    def side(self) -> float:
        """Side in pixels of a square as large as the object."""
        return float(np.sqrt(self.wide * self.high) * self.cell)


def window_of(boxes: np.ndarray, *, cells: int, cell: int) -> Window:
    """The window for objects [K, 4] xyxy: `cells` along the longer side, in their usual shape."""
    shape = float(np.median((boxes[:, 2] - boxes[:, 0]) / (boxes[:, 3] - boxes[:, 1])))
    short = max(2, round(cells * min(shape, 1 / shape)))
    return Window(cell, cells, short) if shape >= 1 else Window(cell, short, cells)


def scales_of(boxes: np.ndarray, window: Window, *, layers: int, largest: float) -> list[float]:
    """Scales at which the window fits objects [K, 4] of the usual sizes, from small objects to large, even steps."""
    sizes = np.sqrt((boxes[:, 2:] - boxes[:, :2]).prod(1))
    low, high = np.quantile(sizes, [0.05, 0.95])
    steps = np.geomspace(low, max(high, low * 1.01), 2 * layers + 1)[1::2]  # each level answers for its share
    return [min(largest, window.side / float(step)) for step in steps]


class Pyramid(nn.Module):
    """Images [N, C, H, W] of 0..1 → histograms of each level [N, bins · 4, rows, columns], the largest level first."""

    def __init__(self, window: Window, scales: list[float], *, bins: int, width: int, height: int) -> None:
        super().__init__()
        self.whole = (height, width)
        self.window, self.hog = window, Hog(cell=window.cell, bins=bins)
        self.values = bins * BLOCK**2
        self.sizes = [(max(1, round(height * scale)), max(1, round(width * scale))) for scale in sorted(scales)[::-1]]
        self.sizes = [size for size in self.sizes if min(self._places(size))]
        self.boxes = torch.cat([self._objects(size, width, height) for size in self.sizes])

    def forward(self, x: Tensor) -> list[Tensor]:
        levels, edge = [], AROUND * self.window.cell
        for size in self.sizes:
            level = F.interpolate(x, size, mode="bilinear", align_corners=False)
            levels.append(self.hog(F.pad(level, (edge,) * 4, mode="replicate")))
            if size <= self.whole:
                x = level  # each is shrunk from the one before, so that no pixel is skipped
        return levels

    def _blocks(self, size: tuple[int, int]) -> tuple[int, int]:
        return tuple(side // self.window.cell + 2 * AROUND - 1 for side in size)  # type: ignore[return-value]  # of two sides

    def _places(self, size: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of windows of a level."""
        (down, across), (rows, columns) = self._blocks(size), self.window.blocks
        return max(0, down - rows + 1), max(0, across - columns + 1)

    def _objects(self, size: tuple[int, int], width: int, height: int) -> Tensor:
        """The object of each window of a level [places, 4], xyxy in pixels of the input, row by row."""
        window, (down, across) = self.window, self._places(size)
        y, x = torch.meshgrid(torch.arange(down), torch.arange(across), indexing="ij")
        corner = torch.stack([x, y], -1).reshape(-1, 2).float() * window.cell
        scale = torch.tensor([size[1] / width, size[0] / height])
        extent = torch.tensor([window.wide, window.high]) * float(window.cell)
        return torch.cat([corner / scale, (corner + extent) / scale], 1)

    def windows(self, levels: list[Tensor], places: Tensor) -> Tensor:
        """Return histograms of windows of one image [n, values], as used to learn templates.

        Args:
            levels: of that image alone; places: [n], positions in `boxes`.
        """
        (rows, columns), first, cut = self.window.blocks, 0, torch.empty(len(places), self.dims)
        for level, size in zip(levels, self.sizes, strict=True):
            down, across = self._places(size)
            for number, position in enumerate(places.tolist()):
                if first <= position < first + down * across:
                    y, x = divmod(position - first, across)
                    cut[number] = level[0, :, y : y + rows, x : x + columns].flatten()
            first += down * across
        return cut

    @property
    def dims(self) -> int:
        """Values of a window."""
        rows, columns = self.window.blocks
        return self.values * rows * columns


class HogDetector(nn.Module):
    """Images → boxes [N, places, 4] in pixels of the input and margins [N, places, classes], as sigmoids if scaled."""

    def __init__(self, pyramid: Pyramid, weights: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.pyramid = pyramid
        shape = (len(weights), pyramid.values, *pyramid.window.blocks)
        self.template = nn.Parameter(weights.reshape(shape), requires_grad=False)
        self.bias = nn.Parameter(bias.clone(), requires_grad=False)
        self.register_buffer("boxes", pyramid.boxes)
        self.likely = False  # whether margins are scaled and become probabilities

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        margins = self.margins(self.pyramid(x))
        boxes = torch.as_tensor(self.boxes).expand(x.shape[0], -1, -1)
        return boxes, margins.sigmoid() if self.likely else margins

    def margins(self, levels: list[Tensor]) -> Tensor:
        """Return the margins of all windows [N, places, classes], from the histograms of a pyramid."""
        by_level = [F.conv2d(level, self.template, self.bias).flatten(2) for level in levels]
        return torch.cat(by_level, 2).transpose(1, 2)

    def scaled(self, slope: Tensor, shift: Tensor) -> HogDetector:
        """The same, answering with probabilities: the sigmoid of each class's margin, scaled and shifted."""
        weights = self.template.flatten(1) * slope[:, None]
        made = HogDetector(self.pyramid, weights, self.bias * slope + shift)
        made.likely = True
        return made.eval()
