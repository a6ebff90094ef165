"""Several cores on one batch: each lane, a thread on cores of its own, computes the loss and gradient of its images.

Spreading every small operation over the cores means meeting several hundred times a step; lanes meet twice. That is
faster on free cores and far faster on busy ones, where each meeting waits for whoever is not on a core just then.
Right only where images do not look at each other: models whose batch norms keep their statistics, or have none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from .ranks import Ranks, parameters_of

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Loss = Callable[[tuple[Tensor, ...], dict[str, Tensor], Ranks], dict[str, Tensor]]


@dataclass
class _Meeting:
    """Where lanes exchange a tensor."""

    barrier: threading.Barrier
    slots: list[Tensor | None] = field(default_factory=list)


@dataclass(frozen=True)
class Lane(Ranks):
    """What a loss sees of the other lanes: the mean over all of them, in a fixed order and so the same every time."""

    number: int = 0
    meeting: Any = None

    def mean(self, value: Tensor) -> Tensor:
        self.meeting.slots[self.number] = value.detach()
        self.meeting.barrier.wait()
        mean = torch.stack(self.meeting.slots).mean(0)
        self.meeting.barrier.wait()
        return mean


class Lanes:
    """`count` threads that share the cores among them."""

    def __init__(self, count: int) -> None:
        self.count = count
        threads = max(1, torch.get_num_threads() // count)
        self._pool = ThreadPoolExecutor(count, initializer=lambda: torch.set_num_threads(threads))

    def learn(
        self, model: nn.Module, loss: Loss, batch: tuple[Tensor, ...], draws: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Set the gradients of `model` to those of the whole batch; return the parts of its loss."""
        parameters = list(parameters_of(model))
        size = len(batch[0]) // self.count
        meeting = _Meeting(threading.Barrier(self.count), [None] * self.count)

        def work(number: int) -> tuple[dict[str, Tensor], Sequence[Tensor | None]]:
            mine = slice(number * size, (number + 1) * size)
            lane = Lane(0, 1, batch[0].device, number=number, meeting=meeting)
            try:
                own_draws = {name: drawn[mine] for name, drawn in draws.items()}
                parts = loss(tuple(part[mine] for part in batch), own_draws, lane)
                total = torch.stack(list(parts.values())).sum()
                return parts, torch.autograd.grad(total, parameters, allow_unused=True)
            except BaseException:
                meeting.barrier.abort()  # nobody waits for this lane
                raise

        done = self.map(work, range(self.count))
        for parameter, *gradients_of_lanes in zip(parameters, *(gradients for _, gradients in done), strict=True):
            present = [gradient for gradient in gradients_of_lanes if gradient is not None]
            parameter.grad = torch.stack(present).sum(0) / self.count if present else None
        return {name: torch.stack([parts[name].detach() for parts, _ in done]).mean() for name in done[0][0]}

    def map(self, work: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        """Do `work` on each item; the answers come in the items' order."""
        return list(self._pool.map(work, items))


def for_scoring() -> Lanes:
    """A lane for each core."""
    return Lanes(max(1, torch.get_num_threads()))


def for_learning(model: nn.Module, ranks: Ranks, batch_size: int) -> Lanes | None:
    """Lanes for one process on several cores; None where they would learn something else, or are no use."""
    cores = torch.get_num_threads()
    count = max(number for number in range(1, min(cores, batch_size) + 1) if batch_size % number == 0)
    alone = ranks.world == 1 and ranks.device.type == "cpu"
    model.train()
    looks = any(isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training for module in model.modules())
    return Lanes(count) if alone and count > 1 and not looks else None
