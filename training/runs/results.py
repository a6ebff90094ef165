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
from workers.core.models import HAS_VALUE, Curve
from workers.jobs.output import files as output_files
from workers.jobs.output.sparklines import sparkline

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


def key_metric(training: TrainingJob) -> tuple[str, str]:
    """The key of the metric that says how good its model is, and its name; of custom code the first one it left."""
    preset = PRESETS.get(training.preset)
    task = TASKS.find(preset.task) if preset else None
    first = next(iter(training.metrics), "")
    return task.figure if task else (first, first)


def headline(training: TrainingJob) -> str:
    """The metric a list shows: "AP50 0.912"; "" while there is none."""
    key, name = key_metric(training)
    return _named(name, training.metrics.get(key))


def _named(name: str, value: Any) -> str:
    return f"{name} {value:.3f}" if isinstance(value, int | float) and not isinstance(value, bool) else ""


def add_newest_metrics(trainings: Collection[TrainingJob]) -> None:
    """Set `loss` and `lr` of each training: the newest values of its newest attempt; None where it reported none."""
    reported = _reported(trainings)
    row: Any  # neither is a column
    for row in trainings:
        values = {key: value for key, (value, _count) in reported.get(row.job_id, {}).items()}
        row.loss, row.lr = _first(values, LOSS_KEYS), _first(values, RATE_KEYS)


def add_list_metrics(trainings: Collection[TrainingJob]) -> None:
    """Set what a list shows: `loss`, `lr`, `figure` (the key metric in words) and `line`, its sparkline.

    A training that left no final metrics shows the newest value. One without the key metric has the sparkline of its
    loss.
    """
    keys = {training.pk: key_metric(training) for training in trainings}
    reported = _reported(trainings, {key for key, _name in keys.values() if key})
    row: Any  # none of them is a column
    for row in trainings:
        own = reported.get(row.job_id, {})
        values = {key: value for key, (value, _count) in own.items()}
        key, label = keys[row.pk]
        row.loss, row.lr = _first(values, LOSS_KEYS), _first(values, RATE_KEYS)
        row.figure = headline(row) or _named(label, values.get(key))
        drawn = next((name for name in (key, *LOSS_KEYS) if name in own and own[name][1] > 1), "")
        row.line = sparkline(row.job_id, row.job.attempt_number, drawn, own[drawn][1]) if drawn else ""
        row.line_name = word(drawn) if drawn else ""


def _reported(
    trainings: Collection[TrainingJob], further: Collection[str] = ()
) -> dict[int, dict[str, tuple[float, int]]]:
    """Newest value and number of points by key of the newest attempt, by job."""
    attempts = {training.job_id: training.job.attempt_number for training in trainings}
    curves = Curve.objects.filter(HAS_VALUE, attempt__job__in=attempts, key__in={*LOSS_KEYS, *RATE_KEYS, *further})
    reported: dict[int, dict[str, tuple[float, int]]] = {}
    for job, attempt, key, value, count in curves.values_list(
        "attempt__job", "attempt__number", "key", "value", "count"
    ):
        if attempts[job] == attempt:
            reported.setdefault(job, {})[key] = (value, count)
    return reported


def _first(values: dict[str, float], keys: Iterable[str]) -> float | None:
    return next((value for key in keys if (value := values.get(key)) is not None), None)


def readable(figures: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Final figures as people read them: by their words, shares with four digits, counts whole."""
    for key, value in figures.items():
        yield (
            word(key),
            f"{value:.4g}" if isinstance(value, float) else str(Count(value) if type(value) is int else value),
        )
