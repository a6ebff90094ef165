"""Gradient accumulation: a batch is learned from in parts, one after the other, for the memory of one part.

The gradient is that of the whole batch. Where a loss asks its ranks for a mean (of how many objects there are), it
gets that of all parts: they are looked at once without gradients first, which costs a forward pass each. Batch norms
that learn their statistics see one part at a time, so they are the exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .ranks import Ranks

Loss = Callable[[tuple[Tensor, ...], dict[str, Tensor], Ranks], dict[str, Tensor]]


@dataclass(frozen=True)
class _RecordingRanks(Ranks):
    """Records, in order, the values whose mean the loss requests."""

    values: list[Tensor] = field(default_factory=list)

    def mean(self, value: Tensor) -> Tensor:
        mean = super().mean(value)
        self.values.append(mean.detach())
        return mean


@dataclass(frozen=True)
class _ReplayingRanks(Ranks):
    """Returns the means over all parts, in the same order."""

    means: Any = None

    def mean(self, value: Tensor) -> Tensor:
        return torch.as_tensor(next(self.means))


def learn(
    model: nn.Module, loss: Loss, batch: tuple[Tensor, ...], draws: dict[str, Tensor], ranks: Ranks, parts: int
) -> dict[str, Tensor]:
    """Add the gradients of the whole batch to `model`, which holds none yet; return the parts of its loss.

    Args:
        parts: that the batch is divided into evenly.
    """
    size = len(batch[0]) // parts
    slices = [slice(part * size, (part + 1) * size) for part in range(parts)]
    own = (ranks.rank, ranks.world, ranks.device, ranks.talk)

    def some(at: slice) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
        return tuple(tensor[at] for tensor in batch), {name: drawn[at] for name, drawn in draws.items()}

    with _still_norms(model):
        means = _means(loss, [some(at) for at in slices], own)
    sums: dict[str, Tensor] = {}
    for number, at in enumerate(slices):
        last = number == parts - 1
        quiet = getattr(model, "no_sync", nullcontext)  # ranks exchange gradients once, with the last part
        with nullcontext() if last else quiet():
            losses = loss(*some(at), _ReplayingRanks(*own, means=iter(means)) if means else Ranks(*own))
            torch.stack(list(losses.values())).sum().div(parts).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        for name, value in losses.items():
            sums[name] = sums.get(name, torch.zeros_like(value)) + value.detach() / parts
    return sums


@contextmanager
def _still_norms(model: nn.Module) -> Iterator[None]:
    """Let batch norms look at a batch without taking its statistics into their own."""
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    before = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, before, strict=True):
            norm.momentum = momentum


@torch.no_grad()
def _means(loss: Loss, every: list[tuple[tuple[Tensor, ...], dict[str, Tensor]]], own: Any) -> list[Tensor]:
    """Return the means that the loss requests, over all parts; [] if the first part requests none."""
    recorded: list[list[Tensor]] = []
    for batch, draws in every:
        ranks = _RecordingRanks(*own)
        loss(batch, draws, ranks)
        if not ranks.values:
            return []
        recorded.append(ranks.values)
    return [torch.stack(values).mean(0) for values in zip(*recorded, strict=True)]
