"""What presets reached in trainings that ran here."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.models import User
from aiplatform.lib.numbers import finite
from datasets.models import DatasetVersion
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
    """Return by preset the best results of visible trainings, per dataset, newest dataset first."""
    rows = TrainingJob.objects.visible_to(user).exclude(preset="").exclude(metrics={}).order_by("-pk")[:LOOKED_AT]
    best: dict[tuple[str, str], Reached] = {}
    for training in rows:
        result = _judged(training)
        previous = best.get((training.preset, training.version_label))
        if result and (previous is None or result.value > previous.value):
            best[training.preset, training.version_label] = result
    by_preset: dict[str, list[Reached]] = {}
    for (preset, _version), result in best.items():
        by_preset.setdefault(preset, []).append(result)
    return {preset: many[:SHOWN] for preset, many in by_preset.items()}


def best_on(user: User, version: DatasetVersion) -> dict[str, Reached]:
    """Return by preset the best result of visible trainings on any version of the same dataset."""
    rows = TrainingJob.objects.visible_to(user).filter(version__dataset=version.dataset_id)
    rows = rows.exclude(preset="").exclude(metrics={}).only("preset", "metrics", "version_label").order_by("-pk")
    best: dict[str, Reached] = {}
    for training in rows[:LOOKED_AT]:
        result = _judged(training)
        previous = best.get(training.preset)
        if result and (previous is None or result.value > previous.value):
            best[training.preset] = result
    return best


def _judged(training: TrainingJob) -> Reached | None:
    for key in _figures(training.preset):
        value = finite(training.metrics.get(key))
        if value is not None:
            return Reached(training, word(key), value)
    return None


def _figures(preset: str) -> tuple[str, ...]:
    """Return the metrics that rate a preset: the headline metric of its task, on either split."""
    preset_card = PRESETS.get(preset)
    key = TASKS.get(preset_card.task).figure[0] if preset_card else ""
    return (key, key.replace("val/", "test/", 1)) if key else ()
