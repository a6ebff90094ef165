"""EfficientNet-Lite0 as a classifier, with the key names of the published weights but for the last layer."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import lite0
from .net import Net

LAST_CHANNELS = 1280  # channels before the last layer
COARSEST = 32


class Lite0Classifier(Net):
    """[N, 3, H, W] → logits [N, classes].

    Args:
        weights: of ImageNet; None: from scratch, and batch norms then follow the batches.
    """

    def __init__(self, classes: int, weights: Mapping[str, Tensor] | None) -> None:
        super().__init__()
        self.pretrained = weights is not None
        self.backbone = lite0.Lite0((COARSEST,), frozen_norms=self.pretrained)
        self._conv_head = lite0.SameConv(lite0.CHANNELS[COARSEST], LAST_CHANNELS, 1, bias=False)
        self._bn1 = lite0.norm(LAST_CHANNELS)
        self.fc = nn.Linear(LAST_CHANNELS, classes)
        if weights is not None:
            lite0.load_pretrained(self.backbone, dict(weights))
            head = {key: weights[key] for key in weights if key.startswith(("_conv_head", "_bn1."))}
            self.load_state_dict(head, strict=False)

    def stages(self) -> list[list[nn.Module]]:
        """The stem with the stages at strides 2, 4 and 8, then 16 and 32, then the layer above them."""
        blocks, ends = list(self.backbone._blocks), [1 + self.backbone.taken[stride] for stride in (2, 4, 8, 16, 32)]
        parts = [blocks[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        parts[0] = [self.backbone._conv_stem, self.backbone._bn0, *parts[0]]
        return [*parts, [self._conv_head, self._bn1]]

    def train(self, mode: bool = True) -> Lite0Classifier:
        super().train(mode)
        if self.pretrained:
            self._bn1.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        x = lite0.normed(self._conv_head, self._bn1, self.backbone(x)[-1])
        return torch.as_tensor(self.fc(F.relu6(x).mean((2, 3))))
