"""Mosaics: training images put together from parts of four, cut where they meet (Takahashi et al. 2018: RICAP).

Each part stays where it was in its image, so objects keep their size; how large they are is varied elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

PARTS = 4
MIDDLE = 0.3  # nearest that the point where the parts meet comes to an edge, as a share of the side


def draw(share: float, generator: torch.Generator, count: int) -> dict[str, Tensor]:
    """Which of `count` images are mosaics, where their parts meet, and what stands for the other three images."""
    uniform = torch.rand(count, 6, generator=generator)
    return {
        "mosaic": uniform[:, 0] < share,
        "middle": MIDDLE + (1 - 2 * MIDDLE) * uniform[:, 1:3],
        "others": uniform[:, 3:],
    }


def made(
    images: Tensor, boxes: Tensor, classes: Tensor, valid: Tensor, draws: Mapping[str, Tensor], *, visible: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Put mosaics together from the images of a batch.

    Args:
        images: [N, C, h, w]; boxes: [N, K, 4] xyxy in their pixels; classes, valid: [N, K].
        visible: an object of which less is left is not trained on.

    Returns:
        The same four, with as many places for objects as the fullest image needs.
    """
    count, (height, width) = len(images), images.shape[2:]
    own = torch.arange(count, device=images.device)[:, None]
    others = torch.where(draws["mosaic"][:, None], (draws["others"] * count).long(), own)
    sources = torch.cat([own, others], 1)  # [N, 4]: left above, right above, left below, right below
    middle = (draws["middle"] * torch.tensor([width, height], device=images.device)).round().long()
    right = torch.arange(width, device=images.device) >= middle[:, :1]
    below = torch.arange(height, device=images.device) >= middle[:, 1:]
    part = (right[:, None, :] + 2 * below[:, :, None])[:, None]  # [N, 1, h, w]
    put = images
    for number in range(1, PARTS):
        put = torch.where(part == number, images[sources[:, number]], put)
    frames = _frames(middle, width, height).to(boxes)
    frames[~draws["mosaic"]] = boxes.new_tensor([0, 0, width, height])
    there = boxes[sources]  # [N, 4, K, 4]
    cut = there.maximum(frames[..., [0, 1, 0, 1]]).minimum(frames[..., [2, 3, 2, 3]])
    left, whole = ((box[..., 2:] - box[..., :2]).clamp(min=0).prod(-1) for box in (cut, there))
    kept = valid[sources] & (left > visible * whole)
    kept[:, 1:] &= draws["mosaic"][:, None, None]
    kept, order = kept.flatten(1).sort(stable=True, dim=1, descending=True)
    order = order[:, : int(kept.sum(1).max())]
    boxes = cut.flatten(1, 2).gather(1, order[..., None].expand(-1, -1, 4))
    return put, boxes, classes[sources].flatten(1).gather(1, order), kept[:, : order.shape[1]]


def _frames(middle: Tensor, width: int, height: int) -> Tensor:
    """The four parts of each image [N, 4, 1, 4], xyxy; `middle` [N, 2] is where they meet."""
    x, y = middle.unbind(1)
    none, across, down = torch.zeros_like(x), torch.full_like(x, width), torch.full_like(y, height)
    corners = [(none, none, x, y), (x, none, across, y), (none, y, x, down), (x, y, across, down)]
    return torch.stack([torch.stack(corner, 1) for corner in corners], 1)[:, :, None]
