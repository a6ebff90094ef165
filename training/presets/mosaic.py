"""Mosaics: training images put together from parts of four, cut where they meet (Takahashi et al. 2018: RICAP).

Each part stays where it was in its image, so objects keep their size; how large they are is varied elsewhere. The other
images are read with the batch, the neighbours of each, so that a part of the batch is learned from as the whole is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

EXTRA = 3  # images besides its own that a mosaic shows
MIDDLE = 0.3  # nearest that the point where the parts meet comes to an edge, as a share of the side


def draw(share: float, generator: torch.Generator, count: int) -> dict[str, Tensor]:
    """Which of `count` images are mosaics, and where their parts meet, as shares of width and height."""
    uniform = torch.rand(count, 3, generator=generator)
    return {"mosaic": uniform[:, 0] < share, "middle": MIDDLE + (1 - 2 * MIDDLE) * uniform[:, 1:]}


def together(each: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The choices about each of the four images, one's own first, under names of their own."""
    return {name + _ending(number): drawn for number, draws in enumerate(each) for name, drawn in draws.items()}


def of_part(draws: Mapping[str, Tensor], number: int) -> dict[str, Tensor]:
    """The choices about one of the four images, under their usual names."""
    ending = _ending(number)
    return {name.removesuffix(ending): drawn for name, drawn in draws.items() if name.endswith(ending)}


def _ending(number: int) -> str:
    return f"_{number}" if number else ""


def made(
    parts: Sequence[tuple[Tensor, Tensor, Tensor, Tensor]], draws: Mapping[str, Tensor], *, visible: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compose mosaics.

    Args:
        parts: of four images each, shown left above, right above, left below and right below: pixels [N, C, h, w],
            boxes [N, K, 4] xyxy in them, classes [N, K] and which of the K are real [N, K]. What is no mosaic shows
            the first.
        visible: an object of which less is left is not trained on.

    Returns:
        Pixels, boxes, classes and which are real, with as many places for objects as the fullest image needs.
    """
    put, *_ = parts[0]
    height, width = put.shape[2:]
    is_mosaic = draws["mosaic"]
    middle = (draws["middle"] * torch.tensor([width, height], device=put.device)).round().long()
    right = torch.arange(width, device=put.device) >= middle[:, :1]
    below = torch.arange(height, device=put.device) >= middle[:, 1:]
    quarter = (right[:, None, :] + 2 * below[:, :, None]) * is_mosaic[:, None, None]  # [N, h, w]
    for number in range(1, len(parts)):
        put = torch.where((quarter == number)[:, None], parts[number][0], put)
    boxes, classes, real = (torch.stack([part[index] for part in parts], 1) for index in (1, 2, 3))  # [N, 4, K, …]
    frames = _frames(middle, width, height).to(boxes)
    frames[~is_mosaic] = boxes.new_tensor([0, 0, width, height])
    cut = boxes.maximum(frames[..., [0, 1, 0, 1]]).minimum(frames[..., [2, 3, 2, 3]])
    left, full_area = ((box[..., 2:] - box[..., :2]).clamp(min=0).prod(-1) for box in (cut, boxes))
    real = real & (left > visible * full_area)
    real[:, 1:] &= is_mosaic[:, None, None]
    real, order = real.flatten(1).sort(stable=True, dim=1, descending=True)
    order = order[:, : int(real.sum(1).max())]
    boxes = cut.flatten(1, 2).gather(1, order[..., None].expand(-1, -1, 4))
    return put, boxes, classes.flatten(1).gather(1, order), real[:, : order.shape[1]]


def _frames(middle: Tensor, width: int, height: int) -> Tensor:
    """The four parts of each image [N, 4, 1, 4], xyxy; `middle` [N, 2] is where they meet."""
    x, y = middle.unbind(1)
    none, across, down = torch.zeros_like(x), torch.full_like(x, width), torch.full_like(y, height)
    corners = [(none, none, x, y), (x, none, across, y), (none, y, x, down), (x, y, across, down)]
    return torch.stack([torch.stack(corner, 1) for corner in corners], 1)[:, :, None]
