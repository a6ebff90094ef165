"""ResNet-34, of the blocks that the platform's own ResNet-18 is made of."""

from presets import nets
from torch import nn


def build(classes: int, channels: int) -> nn.Module:
    """Images [N, channels, H, W] → logits [N, classes]."""
    return nets.ResNet(classes, channels, nets.Basic, (3, 4, 6, 3))
