"""The network of instance segmentation: the detector, and a mask for each object as a sum of prototypes.

Bolya, Zhou, Xiao, Lee: YOLACT, Real-time Instance Segmentation, 2019. The image has a few prototypes, maps of where
something is; each place that answers for an object says how much of each prototype its mask takes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import lite0
from .detector import Answering, Detector, tower
from .masks import IGNORED

FINEST = 4  # stride of the prototypes


class Yolact(Detector):
    """The detector's three answers, then coefficients [N, P, K] and prototypes [N, K, H/4, W/4].

    Args:
        backbone: with the map at stride 4 before those that objects are looked for on.
        prototypes: K.
    """

    def __init__(
        self, backbone: lite0.Lite0, classes: int, *, width: int, depth: int, usual: float, prototypes: int
    ) -> None:
        super().__init__(backbone, classes, width=width, depth=depth, usual=usual, strides=backbone.strides[1:])
        self.fine = nn.Conv2d(lite0.CHANNELS[FINEST], width, 1)
        self.outline_tower = tower(width, 2)
        self.prototypes = nn.Conv2d(width, prototypes, 1)
        self.share_tower = tower(width, 1)
        self.share = nn.Conv2d(width, prototypes, 3, 1, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        finest, *features = self.backbone(x)
        maps = self.pyramid(features)
        upsampled = F.interpolate(maps[0], size=finest.shape[-2:], mode="bilinear", align_corners=False)
        prototypes = F.relu(self.prototypes(self.outline_tower(upsampled + self.fine(finest))))
        shares = [self.share(self.share_tower(features)).flatten(2) for features in maps]
        return *self.answers(maps), torch.cat(shares, 2).transpose(1, 2).tanh(), prototypes


class AnsweringMasks(Answering):
    """The network as it is exported: boxes, scores, coefficients, prototypes."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        logits, distances, fits, shares, prototypes = self.model(x)
        return *self.boxes(logits, distances, fits), shares, prototypes


def mask_loss(prototypes: Tensor, shares: Tensor, masks: Tensor, numbers: Tensor, boxes: Tensor) -> Tensor:
    """Cross-entropy of each object's pixels inside its box, the mean for each object, summed over the objects.

    Args:
        prototypes: [K, h, w] of one image.
        shares: [M, K] of the places that answer for an object.
        masks: number of the object each pixel shows [h, w]; IGNORED counts nowhere.
        numbers, boxes: of the object each place answers for [M], [M, 4] xyxy in cells of the prototypes.
    """
    logits = torch.einsum("mk,khw->mhw", shares, prototypes)
    rows = torch.arange(masks.shape[0], device=masks.device)[:, None] + 0.5
    columns = torch.arange(masks.shape[1], device=masks.device)[None] + 0.5
    x0, y0, x1, y1 = (side[:, None, None] for side in boxes.unbind(1))
    counted = (columns > x0) & (columns < x1) & (rows > y0) & (rows < y1) & (masks != IGNORED)
    wrong = F.binary_cross_entropy_with_logits(logits, (masks == numbers[:, None, None]).float(), reduction="none")
    return ((wrong * counted).sum((1, 2)) / counted.sum((1, 2)).clamp(min=1)).sum()
