"""What is cut out of an image for one look at it: a window around an object, or the whole image.

A window has the shape of the input. What of it lies outside the image is grey. Cached patches show REACH times as much,
so that random views (`Turn`) may look beside the window; the middle of a patch is what the finished model sees.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from . import data, image_cache, lite0

REACH = 1.5  # side of a patch to that of the window; sides of the input are multiples of 32, so its edge is whole

Window = tuple[float, float, float, float]  # x0, y0, x1, y1 in pixels of the image


@dataclass(frozen=True)
class Place:
    """Position of an image in its crop: `size` pixels from `left`, `top`, showing the `visible` part of the image."""

    visible: Window
    left: int
    top: int
    size: tuple[int, int]  # width, height

    @property
    def scale(self) -> np.ndarray:
        x0, y0, x1, y1 = self.visible
        return np.array([self.size[0] / (x1 - x0), self.size[1] / (y1 - y0)])

    @property
    def offset(self) -> np.ndarray:
        """Position in the cut-out = position in the image · scale + offset."""
        return np.array([self.left, self.top]) - np.array(self.visible[:2]) * self.scale


def around(box: Window, width: int, height: int, margin: float) -> Window:
    """The window of the input's shape around a box with `margin` of its sides on each side."""
    x0, y0, x1, y1 = box
    half = max((x1 - x0) / width, (y1 - y0) / height) * (0.5 + margin)
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    return x - half * width, y - half * height, x + half * width, y + half * height


def place(window: Window, image: tuple[int, int], width: int, height: int) -> Place:
    """Return the position of an image of this size in the crop that `window` shows at width × height."""
    x0, y0, x1, y1 = window
    visible = max(x0, 0.0), max(y0, 0.0), min(x1, float(image[0])), min(y1, float(image[1]))
    if visible[0] >= visible[2] or visible[1] >= visible[3]:
        visible = 0.0, 0.0, float(image[0]), float(image[1])  # a window beside the image shows nothing of it
    across, down = width / (x1 - x0), height / (y1 - y0)
    left, top = round((visible[0] - x0) * across), round((visible[1] - y0) * down)
    right, bottom = round((visible[2] - x0) * across), round((visible[3] - y0) * down)
    return Place(visible, left, top, (max(1, right - left), max(1, bottom - top)))


def cut(image: Image.Image, position: Place, width: int, height: int) -> np.ndarray:
    """Return the crop as uint8 [height, width, 3]."""
    out = Image.new("RGB", (width, height), (image_cache.GREY_FILL,) * 3)
    out.paste(
        image.resize(position.size, Image.Resampling.BILINEAR, box=position.visible), (position.left, position.top)
    )
    return np.asarray(out, np.uint8)


@dataclass(frozen=True)
class Patches:
    """Cached patches, and the position of each image in its patch."""

    cache: image_cache.ImageCache
    places: list[Place]
    width: int  # of the input
    height: int

    def pixels(self, wanted: list[int]) -> np.ndarray:
        return self.cache.rows(wanted)

    def middle(self, wanted: list[int]) -> np.ndarray:
        """What the finished model sees of these, [N, H, W, 3]."""
        top, left = round(self.height * (REACH - 1) / 2), round(self.width * (REACH - 1) / 2)
        return self.cache.rows(wanted)[:, top : top + self.height, left : left + self.width]

    def centred(self, number: int, points: np.ndarray) -> np.ndarray:
        """Points [K, 2] of an image in pixels of the input, counted from the middle of the patch."""
        position = self.places[number]
        return np.asarray(points * position.scale + position.offset - np.array([self.width, self.height]) * REACH / 2)

    def in_image(self, number: int, points: np.ndarray) -> np.ndarray:
        """Points [K, 2] in pixels of the input, counted from its corner, in pixels of the image."""
        position = self.places[number]
        edge = np.array([self.width, self.height]) * (REACH - 1) / 2
        return np.asarray((points + edge - position.offset) / position.scale)


def open_or_make(
    version: data.Version, windows: Sequence[tuple[int, Window]], cache: Path, *, width: int, height: int
) -> Patches:
    """The patches of (row, window) at this size of the input, cut first where they are missing.

    Raises:
        Refused: an image cannot be read.
    """
    across, down = round(width * REACH), round(height * REACH)
    wide = [(row, _wide(window)) for row, window in windows]
    places = [
        place(window, (version.images[row].width, version.images[row].height), across, down) for row, window in wide
    ]
    content = [[[version.images[row].path, version.images[row].sha256, *window] for row, window in wide]]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    opened = image_cache.Shared(
        lambda row: image_cache.opened(version.folder / "images" / version.images[row].path, "RGB")
    )

    def patch(number: int) -> np.ndarray:
        return cut(opened(wide[number][0]), places[number], across, down)

    name = f"patches{image_cache.FORMAT_VERSION}-{digest}-{across}x{down}"
    return Patches(image_cache.open_rows(cache, name, (len(wide), down, across, 3), patch), places, width, height)


def _wide(window: Window) -> Window:
    x0, y0, x1, y1 = window
    more_x, more_y = (x1 - x0) * (REACH - 1) / 2, (y1 - y0) * (REACH - 1) / 2
    return x0 - more_x, y0 - more_y, x1 + more_x, y1 + more_y


def draw(params: Mapping[str, Any], generator: torch.Generator, count: int) -> dict[str, Tensor]:
    """How each of `count` patches is mirrored, turned, scaled, moved and lit."""
    uniform = torch.rand(count, 8, generator=generator)
    jitter = params["scale_jitter"]
    return {
        "flip": torch.stack([uniform[:, 0] < params["flip"], uniform[:, 1] < params["vertical_flip"]], 1),
        "scale": (1 - jitter) * ((1 + jitter) / (1 - jitter)) ** uniform[:, 2],
        "turn": torch.deg2rad(params["turn"] * (2 * uniform[:, 3] - 1)),
        "move": params["shift"] * (2 * uniform[:, 4:6] - 1),
        "light": 1 + params["light_jitter"] * (2 * uniform[:, 6:] - 1),
    }


@dataclass(frozen=True)
class Turn:
    """Where each patch of a batch is seen from: source = `matrix` · target + `shift`, in pixels from the middle."""

    matrix: Tensor  # [N, 2, 2]
    shift: Tensor  # [N, 2]
    light: Tensor  # contrast and brightness [N, 2]
    size: tuple[int, int]  # width and height of the input

    @classmethod
    def from_draws(cls, draws: Mapping[str, Tensor], size: tuple[int, int], mirrors: Tensor) -> Turn:
        """Create it from the values of `draw`; only patches that are true in `mirrors` [N] are mirrored."""
        sides = 1 - 2 * (draws["flip"] & mirrors[:, None]).float()
        cos, sin = draws["turn"].cos() / draws["scale"], draws["turn"].sin() / draws["scale"]
        turned = torch.stack([torch.stack([cos, -sin], 1), torch.stack([sin, cos], 1)], 1)
        return cls(turned * sides[:, None], draws["move"] * draws["move"].new_tensor(size), draws["light"], size)

    def images(self, patches: Tensor) -> Tensor:
        """Return normalised images [N, 3, h, w] of patches [N, H, W, 3]; the area outside the patch is grey."""
        images = patches.permute(0, 3, 1, 2).float() - image_cache.GREY_FILL
        own = self.shift.new_tensor(self.size)
        patch_size = self.shift.new_tensor([patches.shape[2], patches.shape[1]])
        theta = torch.cat([self.matrix * own / patch_size[:, None], (2 * self.shift / patch_size)[..., None]], 2)
        grid = F.affine_grid(theta, [len(patches), 1, self.size[1], self.size[0]], align_corners=False)
        images = F.grid_sample(images, grid, align_corners=False)
        contrast, brightness = self.light[:, :1, None, None], self.light[:, 1:, None, None]
        images = ((images * contrast + image_cache.GREY_FILL) * brightness - lite0.MEAN) / lite0.STD
        return images.contiguous(memory_format=torch.channels_last)

    def points(self, points: Tensor) -> Tensor:
        """Points [N, K, 2], counted from the middle of a patch, in pixels of `images`."""
        moved = torch.linalg.solve(self.matrix, (points - self.shift[:, None]).transpose(1, 2)).transpose(1, 2)
        return moved + points.new_tensor(self.size) / 2

    @property
    def mirrored(self) -> Tensor:
        """Which images show what a mirror would [N]: turning twice is no mirror."""
        return torch.det(self.matrix) < 0
