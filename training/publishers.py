"""Who wants to know that a training left a result: upper apps register, the training calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from training.models import TrainingJob

Publisher = Callable[["TrainingJob"], object]

_publishers: list[Publisher] = []
_addresses: list[Callable[[TrainingJob], str]] = []


def register(publisher: Publisher) -> None:
    """Add a function that keeps a training's result; it may be called again for the same attempt."""
    if publisher not in _publishers:
        _publishers.append(publisher)


def register_address(address: Callable[[TrainingJob], str]) -> None:
    """Add a function that knows the page of what a training left; it answers "" where there is none."""
    if address not in _addresses:
        _addresses.append(address)


def address(training: TrainingJob) -> str:
    """Page of the training's result, or ""."""
    return next((found for one in _addresses if (found := one(training))), "")


def publish(training: TrainingJob) -> None:
    """Tell everybody who registered. An exception ends the round; the sweep calls again."""
    for publisher in _publishers:
        publisher(training)
