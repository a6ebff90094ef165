"""The detector's network and its loss for classes: a backbone, a small pyramid, one head for all sizes of objects."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import lite0

MIN_LOG_DISTANCE, MAX_LOG_DISTANCE = -4.0, 5.0  # of the logarithm of a distance in strides


class Detector(nn.Module):
    """[N, 3, H, W] → class logits [N, P, C], distances to the sides in pixels [N, P, 4], fit logits [N, P].

    Args:
        usual: from an object's centre to its side, in pixels, as the boxes are at first.
        strides: of the maps that objects are looked for on; those of the backbone unless given.
    """

    def __init__(
        self,
        backbone: lite0.Lite0,
        classes: int,
        *,
        width: int,
        depth: int,
        usual: float = 8.0,
        strides: tuple[int, ...] = (),
    ) -> None:
        super().__init__()
        self.strides = strides or backbone.strides
        self.backbone = backbone
        self.side = nn.ModuleList(nn.Conv2d(lite0.CHANNELS[stride], width, 1) for stride in self.strides)
        self.smooth = nn.ModuleList(tower(width, 1) for _ in self.strides)
        self.class_tower, self.box_tower = tower(width, depth), tower(width, depth)
        self.what = nn.Conv2d(width, classes, 3, 1, 1)
        self.where = nn.Conv2d(width, 4, 3, 1, 1)
        self.fit = nn.Conv2d(width, 1, 3, 1, 1)
        for layer in (self.what, self.where, self.fit):
            nn.init.normal_(layer.weight, std=0.01)
            layer.bias = nn.Parameter(torch.zeros(layer.out_channels))
        self.where.bias = nn.Parameter(torch.full((4,), math.log(usual / min(self.strides))))
        self.what.bias = nn.Parameter(torch.full((classes,), -math.log(99)))  # at first, 1 % of places show one

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.answers(self.pyramid(self.backbone(x)))

    def pyramid(self, features: list[Tensor]) -> list[Tensor]:
        """The backbone's maps, each with what the coarser ones know, smoothed."""
        maps = [side(own) for side, own in zip(self.side, features, strict=True)]
        for index in range(len(maps) - 2, -1, -1):
            maps[index] = maps[index] + F.interpolate(maps[index + 1], size=maps[index].shape[-2:], mode="nearest")
        return [smooth(own) for smooth, own in zip(self.smooth, maps, strict=True)]

    def answers(self, maps: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Class logits, distances and fit logits of all places of the smoothed maps."""
        logits, distances, fits = [], [], []
        for stride, features in zip(self.strides, maps, strict=True):
            looks = self.class_tower(features)
            frames = self.box_tower(looks)  # what it is says how large it may be
            logits.append(self.what(looks).flatten(2))
            distances.append(
                self.where(frames).clamp(MIN_LOG_DISTANCE, MAX_LOG_DISTANCE).exp().flatten(2) * float(stride)
            )
            fits.append(self.fit(frames).flatten(1))
        return torch.cat(logits, 2).transpose(1, 2), torch.cat(distances, 2).transpose(1, 2), torch.cat(fits, 1)


class Answering(nn.Module):
    """The detector as it is exported: boxes [N, P, 4] xyxy in input pixels and scores [N, P, C] from 0 to 1."""

    def __init__(self, model: Detector, places: Tensor) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("places", places, persistent=False)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.boxes(*self.model(x))

    def boxes(self, logits: Tensor, distances: Tensor, fits: Tensor) -> tuple[Tensor, Tensor]:
        """Boxes and scores of what the detector answered."""
        places = self.get_buffer("places")
        boxes = torch.cat([places - distances[..., :2], places + distances[..., 2:]], -1)
        return boxes, (logits.sigmoid() * fits.sigmoid()[..., None]).sqrt()


def tower(width: int, depth: int) -> nn.Sequential:
    """`depth` times 3×3 convolution, group norm (indifferent to small batches), ReLU."""
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.GroupNorm(8, width), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def focal(logits: Tensor, wanted: Tensor, class_weights: Tensor) -> Tensor:
    """Focal loss, summed: the many easy background places count little, objects of rare classes more."""
    probability = logits.sigmoid()
    wrong = torch.where(wanted > 0, 1 - probability, probability)
    weight = torch.where(wanted > 0, 0.25 * class_weights, 0.75)
    return (weight * wrong**2 * F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")).sum()
