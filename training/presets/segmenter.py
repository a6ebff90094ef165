"""The segmenter's networks, and its loss for overlap: a class for each pixel, answered on a coarser grid."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import lite0
from .detector import tower
from .masks import IGNORED

STRIDES = (2, 4, 8, 16, 32)


class Segmenter(nn.Module):
    """[N, 3, H, W] → logits [N, classes, H/s, W/s] at the finest stride s of the backbone's maps.

    From the coarsest map to the finest: enlarge what is known so far, add what this map sees, smooth both. Every map
    answers, and the answers are added (Long, Shelhamer, Darrell: Fully Convolutional Networks, 2015): coarse maps see
    whole objects and learn at once which class they are, fine ones learn to correct outlines.
    """

    def __init__(self, backbone: lite0.Lite0, classes: int, *, width: int) -> None:
        super().__init__()
        self.backbone = backbone
        widths = [_eights(width / 2 if stride < 4 else width) for stride in backbone.strides]
        coarser = [*widths[1:], widths[-1]]
        self.side = nn.ModuleList(
            nn.Conv2d(lite0.CHANNELS[stride], own, 1) for stride, own in zip(backbone.strides, widths, strict=True)
        )
        self.enter = nn.ModuleList(
            nn.Conv2d(before, own, 1) if before != own else nn.Identity()
            for before, own in zip(coarser, widths, strict=True)
        )
        self.smooth = nn.ModuleList(tower(own, 1) for own in widths)
        self.what = nn.ModuleList(nn.Conv2d(own, classes, 1) for own in widths)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.backbone(x)
        features = self.smooth[-1](self.side[-1](maps[-1]))
        logits = self.what[-1](features)
        for index in range(len(maps) - 2, -1, -1):
            size = maps[index].shape[-2:]
            finer = F.interpolate(self.enter[index](features), size=size, mode="nearest")
            features = self.smooth[index](finer + self.side[index](maps[index]))
            coarser = F.interpolate(logits, size=size, mode="bilinear", align_corners=False)
            logits = coarser + self.what[index](features)
        return torch.as_tensor(logits)


class UNet(nn.Module):
    """[N, 3, H, W] → logits [N, classes, H/2, W/2], with group norm: small batches learn as well as large ones.

    Args:
        width: channels at the finest map; the coarsest has sixteen times as many.
    """

    def __init__(self, classes: int, *, width: int) -> None:
        super().__init__()
        widths = [_eights(width) * 2**level for level in range(len(STRIDES))]
        self.down = nn.ModuleList(
            _pair(before, own, stride=2) for before, own in zip([3, *widths[:-1]], widths, strict=True)
        )
        self.up = nn.ModuleList(_pair(own + coarse, own) for own, coarse in pairwise(widths))
        self.what = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        maps = []
        for down in self.down:
            x = down(x)
            maps.append(x)
        for index in range(len(self.up) - 1, -1, -1):
            enlarged = F.interpolate(x, size=maps[index].shape[-2:], mode="nearest")
            x = self.up[index](torch.cat([maps[index], enlarged], 1))
        return torch.as_tensor(self.what(x))


def _eights(width: float) -> int:
    """The next number of channels that group norm can share out."""
    return 8 * max(1, round(width / 8))


def _pair(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """Two 3×3 convolutions, the first with the stride."""
    layers: list[nn.Module] = []
    for before, step in ((inputs, stride), (outputs, 1)):
        layers += [nn.Conv2d(before, outputs, 3, step, 1, bias=False), nn.GroupNorm(8, outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def enlarged(logits: Tensor, width: int, height: int) -> Tensor:
    """Logits for each pixel of the input."""
    return F.interpolate(logits.float(), size=(height, width), mode="bilinear", align_corners=False)


def losses(logits: Tensor, masks: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return cross-entropy and one minus Dice, each averaged over the images.

    Dice is the overlap with each class that an image shows, the ground included: a small object counts as much in it
    as the ground around it does.

    Args:
        logits, masks: [N, C, H, W] and [N, H, W]; pixels that say IGNORED count nowhere.
        weights: how much a pixel of each class counts in the cross-entropy [C].
    """
    labeled = masks != IGNORED
    named = masks.masked_fill(~labeled, 0)
    logs = F.log_softmax(logits, 1)
    right = logs.gather(1, named[:, None])[:, 0]
    counted = weights[named] * labeled
    wrong = -(counted * right).sum((1, 2)) / counted.sum((1, 2)).clamp(min=1e-6)
    shares = logs.exp() * labeled[:, None]
    flat, count = named.flatten(1), logits.new_zeros(logits.shape[:2])
    there = count.scatter_add(1, flat, labeled.flatten(1).to(count.dtype))
    shared = count.scatter_add(1, flat, right.exp().flatten(1) * labeled.flatten(1))
    dice = 2 * shared / (shares.sum((2, 3)) + there).clamp(min=1)
    shown = there > 0
    overlap = (dice * shown).sum(1) / shown.sum(1).clamp(min=1)
    return wrong.mean(), (shown.any(1) * (1 - overlap)).mean()
