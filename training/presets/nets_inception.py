"""Inception v1 (GoogLeNet) with batch norm: Szegedy et al. 2015, Ioffe and Szegedy 2015. No auxiliary classifiers:
batch norm trains it without."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .net import Net

# Channels of a block: 1×1; before and after the 3×3; before and after the 5×5; after the pool. Stages part at pools.
STAGES = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    (
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)


def unit(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """Convolution, batch norm, ReLU."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class Block(nn.Module):
    """Four ways of looking side by side: 1×1, 3×3, 5×5 and a pool, each narrowed by 1×1."""

    def __init__(self, inputs: int, channels: tuple[int, int, int, int, int, int]) -> None:
        super().__init__()
        one_out, three_in, three, five_in, five, pooled = channels
        self.one = unit(inputs, one_out, 1)
        self.three = nn.Sequential(unit(inputs, three_in, 1), unit(three_in, three, 3))
        self.five = nn.Sequential(unit(inputs, five_in, 1), unit(five_in, five, 5))
        self.pooled = unit(inputs, pooled, 1)
        self.outputs = one_out + three + five + pooled

    def forward(self, x: Tensor) -> Tensor:
        around = F.max_pool2d(x, 3, 1, 1)
        return torch.cat([self.one(x), self.three(x), self.five(x), self.pooled(around)], 1)


class InceptionV1(Net):
    """[N, channels, H, W] → logits [N, classes].

    Args:
        small: for images of up to 64 pixels; the stem then halves them once, not three times.
    """

    def __init__(self, classes: int, channels: int, *, small: bool) -> None:
        super().__init__()
        first = [unit(channels, 64, 3, 2)] if small else [unit(channels, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
        last = [] if small else [nn.MaxPool2d(3, 2, 1)]
        self.stem = nn.Sequential(*first, unit(64, 64, 1), unit(64, 192, 3), *last)
        inputs = 192
        for number, blocks in enumerate(STAGES, start=3):
            layers: list[nn.Module] = [nn.MaxPool2d(3, 2, 1)] if number > 3 else []
            for widths in blocks:
                block = Block(inputs, widths)
                layers.append(block)
                inputs = block.outputs
            self.add_module(f"stage{number}", nn.Sequential(*layers))
        self.fc = nn.Linear(inputs, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def stages(self) -> list[list[nn.Module]]:
        return [[self.stem], *([self.get_submodule(f"stage{number}")] for number in (3, 4, 5))]

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for number in (3, 4, 5):
            x = self.get_submodule(f"stage{number}")(x)
        return torch.as_tensor(self.fc(x.mean((2, 3))))
