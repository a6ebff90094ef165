"""Callbacks for finished trainings: upper apps register functions, trainings call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aiplatform.lib.registry import Registry, dotted_name

if TYPE_CHECKING:
    from training.runs.models import TrainingJob

Publisher = Callable[["TrainingJob"], object]

#: Functions that keep a training's result; they may be called again for the same attempt.
PUBLISHERS: Registry[Publisher] = Registry("publisher of results", name=dotted_name)
#: Functions that know the page of what a training left; they answer "" where there is none.
ADDRESSES: Registry[Callable[[TrainingJob], str]] = Registry("address of results", name=dotted_name)

register = PUBLISHERS.register  # both are called from AppConfig.ready()
register_address = ADDRESSES.register


def address(training: TrainingJob) -> str:
    """Page of the training's result, or ""."""
    return next((url for address_of in ADDRESSES if (url := address_of(training))), "")


def publish(training: TrainingJob) -> None:
    """Call every registered function. An exception ends the round; the sweep calls again."""
    for publisher in PUBLISHERS:
        publisher(training)
