"""What presets reached in trainings that ran here."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.models import User
from aiplatform.lib.numbers import finite
from training.catalog.metric_labels import word
from training.catalog.task_kinds import TASKS
from training.presets.catalog import PRESETS
from training.runs.models import TrainingJob

LOOKED_AT = 200  # of the newest trainings
SHOWN = 3  # data sets of each preset


@dataclass(frozen=True)
class Reached:
    """The best figure of a preset on one data set."""

    training: TrainingJob
    figure: str
    value: float


def reached(user: User) -> dict[str, list[Reached]]:
    """By preset: the best that trainings this person may see reached, for each data set, newest data first."""
    rows = TrainingJob.objects.visible_to(user).exclude(preset="").exclude(metrics={}).order_by("-pk")[:LOOKED_AT]
    best: dict[tuple[str, str], Reached] = {}
    for training in rows:
        one = _judged(training)
        known = best.get((training.preset, training.version_label))
        if one and (known is None or one.value > known.value):
            best[training.preset, training.version_label] = one
    found: dict[str, list[Reached]] = {}
    for (preset, _version), one in best.items():
        found.setdefault(preset, []).append(one)
    return {preset: many[:SHOWN] for preset, many in found.items()}


def _judged(training: TrainingJob) -> Reached | None:
    for key in _figures(training.preset):
        value = finite(training.metrics.get(key))
        if value is not None:
            return Reached(training, word(key), value)
    return None


def _figures(preset: str) -> tuple[str, ...]:
    """By what a preset is judged: the figure that lists show of its task, measured on either split."""
    known = PRESETS.get(preset)
    key = TASKS.get(known.task).figure[0] if known else ""
    return (key, key.replace("val/", "test/", 1)) if key else ()
