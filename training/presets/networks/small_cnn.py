"""Three convolutions and a mean over the image: small, and for images of any size."""

from torch import nn


def unit(inputs: int, outputs: int) -> nn.Sequential:
    """3×3 convolution, batch norm, ReLU; halves the size."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)
    )


def build(classes: int, channels: int) -> nn.Module:
    """Images [N, channels, H, W] → logits [N, classes]."""
    return nn.Sequential(
        unit(channels, 32),
        unit(32, 64),
        unit(64, 128),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, classes),
    )
