"""Who wants to know that a training left a result: upper apps register, the training calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aiplatform.lib.registry import Registry, dotted_name

if TYPE_CHECKING:
    from training.models import TrainingJob

Publisher = Callable[["TrainingJob"], object]

#: Functions that keep a training's result; they may be called again for the same attempt.
PUBLISHERS: Registry[Publisher] = Registry("publisher of results", name=dotted_name)
#: Functions that know the page of what a training left; they answer "" where there is none.
ADDRESSES: Registry[Callable[[TrainingJob], str]] = Registry("address of results", name=dotted_name)

register = PUBLISHERS.register  # both are called from AppConfig.ready()
register_address = ADDRESSES.register


def address(training: TrainingJob) -> str:
    """Page of the training's result, or ""."""
    return next((found for one in ADDRESSES if (found := one(training))), "")


def publish(training: TrainingJob) -> None:
    """Tell everybody who registered. An exception ends the round; the sweep calls again."""
    for publisher in PUBLISHERS:
        publisher(training)
