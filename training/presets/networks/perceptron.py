"""Two hidden layers over all pixels: knows the size of its images."""

from torch import nn


def build(classes: int, channels: int, width: int, height: int) -> nn.Module:
    """Images [N, channels, height, width] → logits [N, classes]."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(channels * width * height, 256),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )
