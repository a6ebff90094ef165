"""The moving average of a model's weights, which is what is scored and exported."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn


class Average:
    """Follows a learning model. The first steps count little: the average reaches back over a tenth of all steps.

    Args:
        decay: weight of the past, at most; 0: no averaging.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model = copy.deepcopy(model).eval().requires_grad_(requires_grad=False)
        self.decay = decay

    @torch.no_grad()
    def follow(self, learning: nn.Module, step: int) -> None:
        """Move towards the learning model, batch-norm statistics included."""
        decay = min(self.decay, (1 + step) / (10 + step))
        pairs = list(zip(_tensors(self.model), _tensors(learning), strict=True))
        numbers = [(mine, theirs) for mine, theirs in pairs if mine.is_floating_point()]
        torch._foreach_lerp_([mine for mine, _ in numbers], [theirs for _, theirs in numbers], 1 - decay)
        for mine, theirs in pairs:
            if not mine.is_floating_point():
                mine.copy_(theirs)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return dict(self.model.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint's."""
        self.model.load_state_dict(state)


def _tensors(model: nn.Module) -> list[Tensor]:
    return [*model.parameters(), *model.buffers()]
