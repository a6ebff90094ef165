"""Results of a training: whose outputs count, and the final figures."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from aiplatform.lib import files
from aiplatform.lib.parsers import is_sound
from aiplatform.lib.units import Count
from training.catalog.metric_labels import word
from training.catalog.task_kinds import TASKS
from training.presets.catalog import PRESETS
from training.runs.models import TrainingJob
from workers.core.models import Curve
from workers.jobs.output import files as output_files

MAX_FIGURES_BYTES = 1 << 20
#: What programs call their loss and their learning rate: the presets, and custom code by its habits.
LOSS_KEYS = ("train/loss", "loss", "train_loss")
RATE_KEYS = ("train/lr", "lr", "learning_rate")


def attempt_of(training: TrainingJob, requested: str = "") -> int:
    """The attempt to show: the requested one, else the one whose result counts, else the newest with outputs.

    Raises:
        NotFound: no such attempt.
    """
    counts = training.published_attempt if training.job.is_final else 0
    return output_files.attempt_of(training.job, requested, usual=counts)


def figures(training: TrainingJob, attempt: int) -> dict[str, Any]:
    """The numbers of outputs/metrics.json; {} where it is absent or not a plain object of numbers and texts."""
    root = output_files.folder_of(training.job, attempt)
    if root is None:
        return {}
    try:
        with os.fdopen(files.open_beneath(root, "metrics.json"), "rb") as file:
            content = json.loads(file.read(MAX_FIGURES_BYTES))
    except (files.OutsideRoot, OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {key[:60]: value for key, value in list(content.items())[:100] if is_sound(key) and _is_figure(value)}


def _is_figure(value: Any) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        return abs(value) < 2**63
    return isinstance(value, float) and math.isfinite(value)


def headline(training: TrainingJob) -> str:
    """The figure a list shows: "AP50 0.912"; of own code the first one it left; "" while there is none."""
    preset = PRESETS.get(training.preset)
    task = TASKS.find(preset.task) if preset else None
    first = next(iter(training.metrics), "")
    key, word = task.figure if task else (first, first)
    value = training.metrics.get(key)
    return f"{word} {value:.3f}" if isinstance(value, int | float) and not isinstance(value, bool) else ""


def add_newest_metrics(trainings: Collection[TrainingJob]) -> None:
    """Set `loss` and `lr` of each training: the newest values of its newest attempt; None where it reported none."""
    jobs = [training.job_id for training in trainings]
    curves = Curve.objects.filter(attempt__job__in=jobs, key__in=(*LOSS_KEYS, *RATE_KEYS))
    reported: dict[tuple[int, int], dict[str, float | None]] = {}
    for job, attempt, key, value in curves.values_list("attempt__job", "attempt__number", "key", "value"):
        reported.setdefault((job, attempt), {})[key] = value

    def first(values: dict[str, float | None], keys: Iterable[str]) -> float | None:
        return next((value for key in keys if (value := values.get(key)) is not None), None)

    row: Any  # neither is a column
    for row in trainings:
        values = reported.get((row.job_id, row.job.attempt_number), {})
        row.loss, row.lr = first(values, LOSS_KEYS), first(values, RATE_KEYS)


def readable(figures: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Final figures as people read them: by their words, shares with four digits, counts whole."""
    for key, value in figures.items():
        yield (
            word(key),
            f"{value:.4g}" if isinstance(value, float) else str(Count(value) if type(value) is int else value),
        )
