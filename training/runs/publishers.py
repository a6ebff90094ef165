"""Callbacks for finished trainings: upper apps register functions, trainings call them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiplatform.lib.registry import Registry, dotted_name

if TYPE_CHECKING:
    from training.runs.models import TrainingJob


@dataclass(frozen=True)
class Result:
    """Addresses of what a training left: its page, and the form that deploys it, "" where it cannot be."""

    url: str
    deploy_url: str = ""


Publisher = Callable[["TrainingJob"], object]

#: Functions that keep a training's result; they may be called again for the same attempt.
PUBLISHERS: Registry[Publisher] = Registry("publisher of results", name=dotted_name)
#: Functions that know what a training left; they return None where there is nothing.
RESULTS: Registry[Callable[[TrainingJob], Result | None]] = Registry("result of trainings", name=dotted_name)

register = PUBLISHERS.register  # both are called from AppConfig.ready()
register_result = RESULTS.register


def result(training: TrainingJob) -> Result | None:
    """Return what the training left."""
    return next((left for result_of in RESULTS if (left := result_of(training))), None)


def publish(training: TrainingJob) -> None:
    """Call every registered function. An exception ends the round; the sweep calls again."""
    for publisher in PUBLISHERS:
        publisher(training)
