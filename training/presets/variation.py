"""Random variations of images that carry classes: mirrored, moved, lit, blanked, blended with another image.

Blending is MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019), both with evenly drawn shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

ERASED = (0.15, 0.4)  # side of a blanked patch as a share of the image's


def draw(
    params: Mapping[str, Any], width: int, height: int, generator: torch.Generator, count: int
) -> dict[str, Tensor]:
    """All choices about `count` images, from the parameters flip, vertical_flip, shift, erase, light_jitter,
    colour_jitter, mixup and cutmix."""
    uniform = torch.rand(count, 8, generator=generator)
    reach = torch.tensor([params["shift"] * height, params["shift"] * width]).round()
    low, high = ERASED
    more = torch.rand(count, 9, generator=generator)
    mixed = more[:, 5] < params["mixup"]
    cut = ~mixed & (more[:, 5] < params["mixup"] + params["cutmix"])
    return {
        "flip": torch.stack([uniform[:, 0] < params["flip"], uniform[:, 1] < params["vertical_flip"]], 1),
        "move": ((2 * uniform[:, 2:4] - 1) * (reach + 0.499)).round().long(),
        "erase": uniform[:, 4] < params["erase"],
        "patch": torch.stack([uniform[:, 5], uniform[:, 6], low + (high - low) * uniform[:, 7]], 1),
        "light": params["light_jitter"] * (2 * more[:, :2] - 1),
        "colour": params["colour_jitter"] * (2 * more[:, 2:5] - 1),
        "mixed": torch.where(mixed, more[:, 6], 1.0),  # share of an image's own pixels, each a little
        "cut": torch.stack([more[:, 7], more[:, 8], torch.where(cut, more[:, 6], 0.0).sqrt()], 1),
    }


def moved(pixels: Tensor, draws: Mapping[str, Tensor]) -> Tensor:
    """Mirror and move [n, H, W, C], by looking each pixel up where it comes from; the edge is repeated."""
    count, height, width, _ = pixels.shape
    lines = torch.arange(height, device=pixels.device).expand(count, -1)
    columns = torch.arange(width, device=pixels.device).expand(count, -1)
    lines = torch.where(draws["flip"][:, 1:], lines.flip(1), lines) + draws["move"][:, :1]
    columns = torch.where(draws["flip"][:, :1], columns.flip(1), columns) + draws["move"][:, 1:]
    images = torch.arange(count, device=pixels.device)[:, None, None]
    return pixels[images, lines.clamp(0, height - 1)[:, :, None], columns.clamp(0, width - 1)[:, None]]


def lit(x: Tensor, draws: Mapping[str, Tensor]) -> Tensor:
    """Change contrast and brightness of normalised images [n, C, H, W], and each colour by itself."""
    contrast, brightness = draws["light"][:, :, None, None, None].unbind(1)
    tint = draws["colour"][:, : x.shape[1], None, None] if x.shape[1] == 3 else 0.0
    return x * (1 + contrast) + brightness + tint


def blanked(x: Tensor, draws: Mapping[str, Tensor]) -> Tensor:
    """Blank a patch of some images [n, C, H, W]."""
    inside = _square(x, draws["patch"]) & draws["erase"][:, None, None, None]
    return x.masked_fill(inside, 0.0)


def blended(
    x: Tensor, targets: Tensor, other: Tensor, other_targets: Tensor, draws: Mapping[str, Tensor]
) -> tuple[Tensor, Tensor]:
    """Blend images [n, C, H, W] with others of the same shape, and put a patch of the other into some.

    Args:
        targets, other_targets: how much of each class the images show [n, classes].

    Returns:
        images, and how much of each class they show [n, classes].
    """
    share = draws["mixed"][:, None, None, None]
    inside = _square(x, draws["cut"])
    mixed = torch.where(inside, other, share * x + (1 - share) * other)
    own = (draws["mixed"] * (1 - inside.float().mean((1, 2, 3))))[:, None]
    return mixed, own * targets + (1 - own) * other_targets


def _square(x: Tensor, patch: Tensor) -> Tensor:
    """Return where an image's patch is (centre y, x and side, as shares of the image): [n, 1, H, W]."""
    height, width = x.shape[-2:]
    centre_y, centre_x, side = patch.T[:, :, None]
    tall = ((torch.arange(height, device=x.device) / height - centre_y).abs() < side / 2)[:, None, :, None]
    wide = ((torch.arange(width, device=x.device) / width - centre_x).abs() < side / 2)[:, None, None, :]
    return tall & wide


def balanced(labels: Tensor, classes: int) -> Tensor:
    """Weight of each class [classes], so that all together count the same; 1 on the mean over the images."""
    counts = torch.bincount(labels, minlength=classes).float()
    return torch.where(counts > 0, len(labels) / (counts.clamp(min=1) * (counts > 0).sum()), 0.0)


def rates(table: Tensor) -> dict[str, float]:
    """Return metrics of a table [truth, answer] of counts: means over the present classes."""
    there, predicted, right = table.sum(1), table.sum(0), table.diagonal()
    present = there > 0
    recall, f1 = right / there.clamp(min=1), 2 * right / (there + predicted).clamp(min=1)
    return {
        "val/accuracy": float(right.sum() / table.sum()),
        "val/balanced_accuracy": float(recall[present].mean()),
        "val/macro_f1": float(f1[present].mean()),
    }
