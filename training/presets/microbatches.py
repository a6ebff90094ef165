"""Number of micro-batches of a batch, so that it fits into the memory of a GPU or of a share of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import nn

from . import rng
from .ranks import Ranks
from .run import Refused

if TYPE_CHECKING:
    from .trainer import Trainer

OPTIMIZER = 2  # tensors as large as all that learns, which AdamW makes at its first step


def find_count(trainer: Trainer) -> int:
    """Return the smallest number of even parts of a rank's share of a batch that fit, by trial; 1 on CPUs.

    Raises:
        Refused: not even a single image fits.
    """
    if trainer.ranks.device.type != "cuda":
        return 1
    share = trainer.batch_size // trainer.ranks.world

    def fits(count: int) -> bool:
        return not trainer.ranks.highest(float(not fits_in_memory(trainer, count)))[0]  # all ranks take the same

    parts = fewest(share, fits)
    if parts is None:
        raise Refused(
            "A single image does not fit into the memory this training may use. Choose a smaller width and height or "
            "a smaller network, or ask for a larger share of the card."
        )
    return parts


def fewest(share: int, fits: Callable[[int], bool]) -> int | None:
    """The smallest number that divides `share` into parts that fit; None where not even single images do."""
    return next((number for number in range(1, share + 1) if share % number == 0 and fits(share // number)), None)


def fits_in_memory(trainer: Trainer, count: int) -> bool:
    """Return whether `count` images can be learned from at once: gradients are computed and discarded.

    Model, statistics of norms, random generators and the place in the data stay as they are.
    """
    task, device = trainer.task, trainer.ranks.device
    generators = rng.state()
    norms = [module for module in task.model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    learning = [parameter for parameter in task.model.parameters() if parameter.requires_grad]
    task.model.train()
    for norm in norms:
        norm.eval()  # so it keeps its statistics, and asks no other rank
    try:
        batch = task.load([row % task.rows for row in range(count)])
        draws = {name: drawn.to(device) for name, drawn in task.draw(torch.Generator().manual_seed(0), count).items()}
        losses = trainer.loss(batch, draws, Ranks(0, 1, device))
        torch.stack(list(losses.values())).sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        room = [torch.empty_like(parameter) for parameter in learning for _ in range(OPTIMIZER)]
        room.clear()
    except torch.OutOfMemoryError:
        return False
    finally:
        task.model.zero_grad(set_to_none=True)
        task.model.train()
        rng.restore(generators)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return True
