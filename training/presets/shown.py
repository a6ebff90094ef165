"""What a task adds so that people see what its model is given and what it answers."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from . import lite0
from .marks import Marks


class Shown:
    """Base of tasks that can be inspected. By default, images are shown without marks.

    Attributes:
        mean, std: of what the model is given, in pixel values 0..255; one each, or one for each channel.
        dense: see Task.
        fitting: how a whole image is made to fit the model's input, see image_cache.pixels.
    """

    mean: Any = lite0.MEAN
    std: Any = lite0.STD
    fitting: str = ""
    dense: bool = False

    def counts(self) -> tuple[str, dict[str, int]]:
        """What is counted among the images to learn from (objects or images), and how many there are of each class."""
        return "", {}

    def image_of(self, row: int) -> int:
        """Place of the image that a row to learn from or to score on belongs to."""
        return row

    def targets(self, batch: Any, draws: dict[str, Tensor]) -> list[Marks]:
        """What each image of a batch is to be learned as, in pixels of what the model is given."""
        return [Marks() for _ in range(len(batch[0]))]

    def truths(self, rows: list[int]) -> list[Marks]:
        """What the images at `rows` show, in pixels of the model's input."""
        return [Marks() for _ in rows]

    def answers(self, model: nn.Module, images: Tensor) -> list[Marks]:
        """What the model answers for images [N, C, H, W] as the finished model is given them; [] draws nothing."""
        return []

    def sure(self, logits: Tensor) -> Tensor:
        """How sure a model whose answers are one number for each class is of each of them, 0 to 1 [N, C]."""
        return logits.softmax(1)


def for_task(task: Any) -> Shown:
    """Return the task if it can be inspected, else the default."""
    return task if isinstance(task, Shown) else Shown()
