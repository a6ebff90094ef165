"""Who wants to know that a training left a result: upper apps register, the training calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from training.models import TrainingJob

Publisher = Callable[["TrainingJob"], object]

_publishers: list[Publisher] = []


def register(publisher: Publisher) -> None:
    """Add a function that keeps a training's result; it may be called again for the same attempt."""
    if publisher not in _publishers:
        _publishers.append(publisher)


def publish(training: TrainingJob) -> None:
    """Tell everybody who registered. An exception ends the round; the sweep calls again."""
    for publisher in _publishers:
        publisher(training)
