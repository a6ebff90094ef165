"""What a preset brings to the trainer, and where a training stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from . import data
from .ranks import Ranks


class Task(Protocol):
    """What a preset brings. Rows are positions 0..rows-1 among the images to learn from."""

    version: data.Version
    model: nn.Module
    rows: int
    score: list[int]  # images to score on
    rows_scored: float  # what scoring costs, in rows learned from
    facts: dict[str, Any]  # what a checkpoint's meta.json says of the task's own choices
    heads: tuple[str, ...]  # how the names of tensors begin that belong to the classes
    dense: bool  # whether bfloat16 is faster on processors that have it: dense convolutions, matrix products
    metric: str  # the figure that decides which checkpoint is best, higher is better

    def optimizer(self) -> torch.optim.Optimizer:
        """The optimizer over what learns, each group at its highest learning rate."""

    def load(self, rows: list[int]) -> tuple[Tensor, ...]:
        """Read rows from disk as tensors [count, …]; called one batch ahead, in another thread."""

    def draw(self, generator: torch.Generator, count: int) -> dict[str, Tensor]:
        """All random choices about `count` images, as tensors [count, …]."""

    def loss(self, model: nn.Module, batch: Any, draws: dict[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
        """The loss in named parts, which are summed up."""

    def evaluate(self, model: nn.Module, ranks: Ranks, rows: list[int]) -> dict[str, float]:
        """Score the model on `rows`, some or all of `score`; each rank takes its part, all return the same figures."""

    def export(self, model: nn.Module, folder: Path, figures: dict[str, float]) -> None:
        """Write the finished model."""


@dataclass
class Position:
    """How far the training is: all that a checkpoint needs besides tensors."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # batches of this epoch already learned
    used_s: float = 0.0  # time of earlier attempts, without pauses
    eval_s: float = 0.0  # time spent on scoring
    last_eval_s: float = 0.0  # of all images, where only a sample was scored as long as that lets expect
    scored_at: float = 0.0  # progress at the last point along the way, and the part of the images all of them use
    scored_part: float | None = None
    checkpoint_s: float = 0.0
    last_checkpoint_s: float = 0.0
    phase_s: dict[str, float] = field(default_factory=dict)  # seconds of each phase, over all attempts
    step_s: float | None = None  # what a step takes, see budget.Pace
    best: float | None = None
    weights_taken: int = 0  # tensors that it started from, and how many the network has
    weights_of: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
