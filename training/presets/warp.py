"""Random views of a batch: mirrored, scaled, moved, cut out, relit. Boxes and masks go where their image goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import image_cache, lite0
from .masks import IGNORED
from .view import View

AIMED = 0.85  # share of windows that look at an object
STEP = 32  # px: sides of the input that several sizes are learned at are multiples of it
VISIBLE = 0.4  # an object of which less is left in the image is not trained on


def draw(params: Mapping[str, Any], generator: torch.Generator, count: int) -> dict[str, Tensor]:
    """How each of `count` images is mirrored, scaled, moved and lit, and which object a window looks at."""
    uniform = torch.rand(count, 8, generator=generator)
    jitter = params["scale_jitter"]
    mirrored = torch.stack([uniform[:, 0] < params["flip"], uniform[:, 1] < params["vertical_flip"]], 1)
    light = 1 + params["light_jitter"] * (2 * uniform[:, 5:7] - 1)
    varied = params.get("multi_scale", 0.0)
    size = 1 + varied * (2 * torch.rand(1, generator=generator) - 1) if varied else torch.ones(1)
    return {
        "size": size.expand(count),  # one for all images of a batch
        "flip": 1 - 2 * mirrored.float(),
        "scale": (1 - jitter) * ((1 + jitter) / (1 - jitter)) ** uniform[:, 2],
        "move": 2 * uniform[:, 3:5] - 1,
        "light": light,
        "aim": uniform[:, 7],
    }


@dataclass(frozen=True)
class Warp:
    """Where each image of a batch is seen from. `zoom` and `shift` [N, 2] lead from target to source, in -1..1."""

    zoom: Tensor
    shift: Tensor
    light: Tensor  # contrast and brightness [N, 2]
    size: Tensor  # width and height of the input
    window: tuple[int, int]  # width and height of the images that are made

    @classmethod
    def from_draws(cls, draws: Mapping[str, Tensor], view: View, boxes: Tensor, valid: Tensor) -> Warp:
        """Create it from the values of `draw`; windows aim at `boxes` [N, K, 4], of which `valid` [N, K] are real."""
        size, window = boxes.new_tensor([view.width, view.height]), boxes.new_tensor(view.window)
        drawn = float(draws["size"][0])
        wide, high = (side if drawn == 1 else max(STEP, round(side * drawn / STEP) * STEP) for side in view.window)
        zoom = draws["flip"] / draws["scale"][:, None] * window / size
        shift = draws["move"] * (1 - zoom.abs()).abs()
        if view.windowed:
            shift = _aimed(shift, zoom.abs(), boxes / size.repeat(2) * 2 - 1, valid, draws)
        return cls(zoom, shift, draws["light"], size, (wide, high))

    def images(self, pixels: Tensor) -> Tensor:
        """Return normalised images [N, 3, h, w] of pixels [N, H, W, 3]; the area outside is grey."""
        images = pixels.permute(0, 3, 1, 2).float() - image_cache.GREY_FILL
        images = F.grid_sample(images, self._grid(len(pixels)), align_corners=False)
        contrast, brightness = self.light[:, :1, None, None], self.light[:, 1:, None, None]
        images = ((images * contrast + image_cache.GREY_FILL) * brightness - lite0.MEAN) / lite0.STD
        return images.contiguous(memory_format=torch.channels_last)

    def masks(self, masks: Tensor) -> Tensor:
        """Return the classes [N, h, w] of the pixels of `images`, from masks [N, H, W]; the area outside is ignored."""
        moved = F.grid_sample(
            masks[:, None].float() - IGNORED, self._grid(len(masks)), mode="nearest", align_corners=False
        )
        return (moved[:, 0] + IGNORED).round().long()

    def boxes(self, boxes: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """Return boxes [N, K, 4] in pixels of `images`, clipped at their edges, and which still show an object."""
        corners = boxes.reshape(*boxes.shape[:2], 2, 2) / self.size * 2 - 1
        window = boxes.new_tensor(self.window)
        corners = ((corners - self.shift[:, None, None]) / self.zoom[:, None, None] + 1) / 2 * window
        moved = torch.cat([corners.amin(-2), corners.amax(-2)], -1)
        cut = moved.clamp(min=0).minimum(window.repeat(2))
        left = (cut[..., 2:] - cut[..., :2]).clamp(min=0).prod(-1)
        full_area = (moved[..., 2:] - moved[..., :2]).prod(-1)
        return cut, valid & (left > VISIBLE * full_area)

    def _grid(self, count: int) -> Tensor:
        theta = torch.zeros(count, 2, 3, device=self.zoom.device)
        theta[:, 0, 0], theta[:, 1, 1], theta[:, :, 2] = self.zoom[:, 0], self.zoom[:, 1], self.shift
        width, height = self.window
        return F.affine_grid(theta, [count, 1, height, width], align_corners=False)


def _aimed(shift: Tensor, zoom: Tensor, boxes: Tensor, valid: Tensor, draws: Mapping[str, Tensor]) -> Tensor:
    """Move windows so that each shows one of its image's objects somewhere; a few stay where chance put them."""
    counts = valid.sum(1)
    aim = draws["aim"] / AIMED  # beyond 1: not aimed
    chosen = (aim * counts).long().clamp(max=max(boxes.shape[1] - 1, 0))
    if not boxes.shape[1]:
        return shift
    box = boxes[torch.arange(len(boxes), device=boxes.device), chosen]
    centre = (box[:, :2] + box[:, 2:]) / 2 + draws["move"] * zoom * 0.8
    inside = (1 - zoom).clamp(min=0)
    aimed = ((aim < 1) & (counts > 0))[:, None]
    return torch.where(aimed, centre.clamp(-inside, inside), shift)
