"""Patch features, a bank of good ones, and how far a patch is from it: PatchCore, Roth et al. 2022.

Unlike the paper's, features are EfficientNet-Lite0's, each channel divided by its spread over the good images, and
the score of an image is the largest distance itself, without the weight of its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import lite0

STRIDES = (8, 16)  # of the maps that features are taken from
PROJECTED = 48  # dimensions in which patches are compared while the bank is chosen
COMPARED = 256  # patches of the bank that distances are computed to at a time
TINY = 1e-6


class PatchFeatures(nn.Module):
    """Images [N, 3, H, W] → features [N, C, H/8, W/8] of the surroundings of each patch."""

    def __init__(self, backbone: lite0.Lite0) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, x: Tensor) -> Tensor:
        fine, coarse = (F.avg_pool2d(features, 3, 1, 1) for features in self.backbone(x))
        enlarged = F.interpolate(coarse, size=fine.shape[-2:], mode="bilinear", align_corners=False)
        return torch.cat([fine, enlarged], 1)


class PatchCore(nn.Module):
    """Images [N, 3, H, W] → scores [N] and maps [N, H/8, W/8] of 0..1; 0.5 is `threshold`.

    Args:
        spread: of each channel, [C].
        bank: good patches [B, C], divided by `spread`.
        threshold: distance from which on a patch is an anomaly.
    """

    spread: Tensor
    bank: Tensor

    def __init__(self, features: PatchFeatures, spread: Tensor, bank: Tensor, threshold: float) -> None:
        super().__init__()
        self.features, self.threshold = features, threshold
        self.register_buffer("spread", spread)
        self.register_buffer("bank", bank)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        distances = self.distances(x)
        likely = distances / (distances + self.threshold)
        return likely.flatten(1).amax(1), likely

    def distances(self, x: Tensor) -> Tensor:
        """Distance of each patch to the nearest one of the bank, [N, H/8, W/8]."""
        features = self.features(x).permute(0, 2, 3, 1) / self.spread
        nearest = torch.full_like(features[..., 0], torch.inf)
        for some in torch.split(self.bank, COMPARED):  # all at once would take memory for patches × bank
            nearest = torch.minimum(nearest, (some.square().sum(1) - 2 * features @ some.T).amin(-1))
        return ((nearest + features.square().sum(-1)).clamp(min=0) + TINY).sqrt()


def coreset(patches: Tensor, count: int, *, seed: int, between: Callable[[float], None]) -> Tensor:
    """Rows of `patches` [P, C] that cover all of them well: each next one is farthest from those chosen (k-center
    greedy: Sener and Savarese 2018), compared in a random projection.

    Args:
        between: called with the share that is done, 0..1.

    Returns:
        at most `count` rows.
    """
    generator = torch.Generator().manual_seed(seed)
    projection = torch.randn(patches.shape[1], PROJECTED, generator=generator) / PROJECTED**0.5
    points = patches @ projection
    chosen = [int(torch.randint(len(points), (1,), generator=generator))]
    far = (points - points[chosen[0]]).square().sum(1)
    while len(chosen) < min(count, len(points)):
        chosen.append(int(far.argmax()))
        torch.minimum(far, (points - points[chosen[-1]]).square().sum(1), out=far)
        between(len(chosen) / count)
    return patches[chosen]


def auroc(scores: Tensor, bad: Tensor) -> float:
    """Share of pairs of a bad and a good image in which the bad one scores higher; ties count half."""
    good = scores[~bad].sort().values
    below, level = (torch.searchsorted(good, scores[bad].contiguous(), right=right) for right in (False, True))
    return float((below + level).double().mean()) / (2 * len(good))


def best_threshold(scores: Tensor, bad: Tensor) -> tuple[float, float]:
    """Where F1 of finding bad images is highest, half way to the next lower score, and that F1."""
    best = (0.0, 0.0)
    ordered = scores.sort().values.tolist()
    for below, at in zip([0.0, *ordered], ordered, strict=False):
        hits = scores >= at
        right = int((hits & bad).sum())
        f1 = 2 * right / (int(hits.sum()) + int(bad.sum()))
        if f1 > best[1]:
            best = ((below + at) / 2, f1)
    return best


def usual_threshold(scores: Tensor) -> float:
    """Where no bad image is known: three spreads above the mean of good ones, and above the highest of them."""
    return max(float(scores.mean() + 3 * scores.std(unbiased=False)), 1.02 * float(scores.max()))
