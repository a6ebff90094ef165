"""Figures of scores of one class over images, and the score from which on the class is taken to be there."""

from __future__ import annotations

import torch
from torch import Tensor


def _steps(scores: Tensor, there: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each different score [K], falling: the score, how many images above it are right, how many there are."""
    order = scores.argsort(descending=True)
    falling, right = scores[order], there[order].double().cumsum(0)
    last = torch.cat([falling[1:] != falling[:-1], torch.ones(1, dtype=torch.bool)])
    return falling[last], right[last], torch.arange(1, len(scores) + 1)[last]


def average_precision(scores: Tensor, there: Tensor) -> float:
    """Precision at each step of recall, weighted by the step; not a number where the class is on no image.

    Args:
        scores: [N]; there: [N], whether the class is on the image.
    """
    _scores, right, answered = _steps(scores, there)
    gained = torch.diff(right, prepend=right.new_zeros(1))
    return float((gained * right / answered).sum() / right[-1])


def best_cut(scores: Tensor, there: Tensor) -> tuple[float, float]:
    """Return the threshold between two scores with the highest F1, and that F1; (0, 0) if no image has the class."""
    if not there.any():
        return 0.0, 0.0
    falling, right, answered = _steps(scores, there)
    f1 = 2 * right / (answered + right[-1])
    index = int(f1.argmax())
    below = falling[index + 1] if index + 1 < len(falling) else falling[index] - 1
    return float((falling[index] + below) / 2), float(f1[index])
