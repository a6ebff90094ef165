"""Distributed training: this process's rank, exchanges between ranks, batch norm over all ranks.

Started alone, everything here is a no-op. Beneath torchrun: NCCL between GPUs, gloo between CPUs, and gloo for
the agreements in both cases, so that asking what to do never waits for a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

ACCELERATED = 60.0  # cores that one accelerator is worth here, at least


@dataclass(frozen=True)
class Ranks:
    """This process among `world` many; `talk` is the group for agreements (None when alone)."""

    rank: int
    world: int
    device: torch.device
    talk: Any = None

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def cores(self) -> float:
        """Cores that learn, over all ranks; an accelerator is worth many."""
        return self.world * (torch.get_num_threads() if self.device.type == "cpu" else ACCELERATED)

    def highest(self, *figures: float) -> list[float]:
        """The largest of each figure over all ranks: one exchange, the same answer everywhere."""
        if self.world == 1:
            return list(figures)
        table = torch.tensor(figures, dtype=torch.float64)
        dist.all_reduce(table, op=dist.ReduceOp.MAX, group=self.talk)
        return [float(figure) for figure in table]

    def mean(self, value: Tensor) -> Tensor:
        """The mean of a tensor over all ranks, without gradient."""
        if self.world == 1:
            return value
        total = value.detach().clone()
        dist.all_reduce(total)
        return total / self.world

    def gather(self, rows: list[Any]) -> list[Any]:
        """All ranks' lists one after the other, on every rank."""
        if self.world == 1:
            return rows
        per_rank: list[list[Any]] = [[] for _ in range(self.world)]
        dist.all_gather_object(per_rank, rows, group=self.talk)
        return [row for part in per_rank for row in part]

    def wait(self) -> None:
        """Wait until all ranks have called this."""
        if self.world > 1:
            dist.barrier(group=self.talk)

    def leave(self) -> None:
        if self.world > 1:
            dist.destroy_process_group()


def join() -> Ranks:
    """Read this process's rank from torchrun's environment and choose its device."""
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
        fraction = float(os.environ.get("AIP_GPU_MEMORY_FRACTION", "1"))
        if fraction < 1:  # this job has a share of the card
            torch.cuda.set_per_process_memory_fraction(fraction, device)
    if world == 1:
        return Ranks(0, 1, device)
    dist.init_process_group("nccl" if cuda else "gloo")
    return Ranks(rank, world, device, dist.new_group(backend="gloo"))


class _Total(torch.autograd.Function):
    """Sum over all ranks, with a gradient that is summed over all ranks as well."""

    @staticmethod
    def forward(_ctx: Any, value: Tensor) -> Tensor:
        total = value.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(_ctx: Any, *grads: Tensor) -> Tensor:
        total = grads[0].clone()
        dist.all_reduce(total)
        return total


class SharedBatchNorm(nn.BatchNorm2d):
    """Batch norm over the batch of all ranks: torch has one for GPUs only."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):  # sums of many squares need more than bfloat16 has
            return self._over_all(x.float()).to(x.dtype)

    def _over_all(self, x: Tensor) -> Tensor:
        count = x.numel() // x.shape[1]
        sums = torch.cat([x.sum((0, 2, 3)), (x * x).sum((0, 2, 3)), x.new_tensor([float(count)])])
        sums = _Total.apply(sums)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        mean, square = sums[:-1].div(sums[-1]).chunk(2)
        variance = (square - mean * mean).clamp(min=0)
        with torch.no_grad():
            momentum = self.momentum if self.momentum is not None else 0.1
            total = sums[-1]
            if self.running_mean is not None and self.running_var is not None:
                self.running_mean.lerp_(mean, momentum)
                self.running_var.lerp_(variance * total / (total - 1).clamp(min=1), momentum)
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
        scale = self.weight * torch.rsqrt(variance + self.eps)
        return x * scale[:, None, None] + (self.bias - mean * scale)[:, None, None]


def share_norms(model: nn.Module, ranks: Ranks) -> nn.Module:
    """Let the batch norms of `model` see all ranks' images, so that N ranks learn what one would."""
    if ranks.world == 1:
        return model
    if ranks.device.type == "cuda":
        return nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if type(child) is nn.BatchNorm2d:
                child.__class__ = SharedBatchNorm
                setattr(parent, name, child)
    return model


def parameters_of(model: nn.Module) -> Iterable[nn.Parameter]:
    """Return the parameters that learn."""
    return (parameter for parameter in model.parameters() if parameter.requires_grad)
