"""Histograms of oriented gradients as layers: Dalal and Triggs 2005, with unsigned directions and L2-Hys blocks."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BLOCK = 2  # cells along each side of a block
CLIPPED = 0.2  # no value of a block counts for more
EPSILON = 1e-3  # length of a block's values below which they count as nothing
TINY = 1e-6
FAINT = 1e-4  # a fortieth of a grey level: engines that resize images agree on no more
BLACK = 1e-3  # a quarter of a grey level: at nought the root would make edges of rounding errors


class Hog(nn.Module):
    """Images [N, C, H, W] of 0..1 → features [N, bins · 4, H/cell - 1, W/cell - 1], one column for each block of cells.

    Args:
        cell: side of a cell in pixels; what is left at the right and below is not seen.
        bins: directions from 0 to 180 degrees.
    """

    across: Tensor

    def __init__(self, *, cell: int, bins: int) -> None:
        super().__init__()
        self.cell, self.bins = cell, bins
        self.register_buffer("across", torch.tensor([[[[-1.0, 0.0, 1.0]]]]), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        cells = F.avg_pool2d(self.votes((x.clamp(0, 1) + BLACK).sqrt()), self.cell)
        blocks = torch.cat([cells[:, :, dy : cells.shape[2] - 1 + dy, dx : cells.shape[3] - 1 + dx]
                            for dy in range(BLOCK) for dx in range(BLOCK)], 1)  # fmt: skip
        clipped = (blocks / (blocks.square().sum(1, keepdim=True) + EPSILON**2).sqrt()).clamp(max=CLIPPED)
        return clipped / (clipped.square().sum(1, keepdim=True) + EPSILON**2).sqrt()

    def votes(self, x: Tensor) -> Tensor:
        """How strongly each pixel votes for each direction [N, bins, H, W]; of the channels' votes the strongest.

        Dalal and Triggs let the channel with the strongest gradient vote alone: where two are alike, another engine's
        rounding would choose another direction.
        """
        count, channels, height, width = x.shape
        flat = F.pad(x.reshape(-1, 1, height, width), (1, 1, 1, 1), mode="replicate")
        right = F.conv2d(flat[:, :, 1:-1], self.across).view(count, channels, height, width)
        down = F.conv2d(flat[..., 1:-1], self.across.transpose(2, 3)).view(count, channels, height, width)
        strength = ((right.square() + down.square()).sqrt() - FAINT).clamp(min=0)  # an even ground votes for nothing
        right = torch.where(right == 0, TINY, right)  # exported, the angle of nothing would be no number
        direction = torch.atan2(down, right) / math.pi * self.bins  # -bins..bins; half a turn is the same direction
        bins = torch.arange(self.bins, device=x.device, dtype=x.dtype).view(1, 1, -1, 1, 1)
        distance = direction.unsqueeze(2) - bins
        distance = (distance - self.bins * (distance / self.bins).round()).abs()
        return (strength.unsqueeze(2) * (1 - distance).clamp(min=0)).amax(
            1
        )  # shared between the two nearest directions


class HogSvm(nn.Module):
    """[N, C, H, W] → logits [N, classes]: margins of one linear machine for each class, brought to a common scale."""

    def __init__(self, hog: Hog, weights: Tensor, bias: Tensor, scale: float) -> None:
        super().__init__()
        self.hog = hog
        self.fc = nn.Linear(weights.shape[1], weights.shape[0])
        self.fc.weight.data, self.fc.bias.data = weights * scale, bias * scale

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.fc(self.hog(x).flatten(1)))
