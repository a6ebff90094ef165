"""Results of a training: whose outputs count, and the final figures."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from aiplatform.lib import files
from aiplatform.lib.parsers import is_sound
from aiplatform.lib.units import Count
from training.catalog import key_metrics
from training.catalog.key_metrics import KeyMetric
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


def metric_key(training: TrainingJob) -> tuple[str, str]:
    """The key of the metric that says how good its model is, and its label; of custom code the first one it left."""
    preset = PRESETS.get(training.preset)
    task = TASKS.find(preset.task) if preset else None
    first = next(iter(training.metrics), "")
    return task.figure if task else (first, first)


def key_metric(training: TrainingJob) -> KeyMetric | None:
    """The metric of the saved weights; None while there are none."""
    return key_metrics.find(training.metrics, [metric_key(training)])


def add_newest_metrics(trainings: Collection[TrainingJob]) -> None:
    """Set `loss` and `lr` of each training: the newest values of its newest attempt; None where it reported none."""
    reported = _reported(trainings)
    row: Any  # neither is a column
    for row in trainings:
        values = {key: curve.value for key, curve in reported.get(row.job_id, {}).items()}
        row.loss, row.lr = _first(values, LOSS_KEYS), _first(values, RATE_KEYS)


def add_list_metrics(trainings: Collection[TrainingJob]) -> None:
    """Set what a list shows: `loss`, `lr`, `figure` (the key metric) and `line`, its sparkline.

    A training that left no final metrics shows the newest value. One without the key metric has the sparkline of its
    loss.
    """
    keys = {training.pk: metric_key(training) for training in trainings}
    reported = _reported(trainings, {key for key, _name in keys.values() if key})
    row: Any  # none of them is a column
    for row in trainings:
        own = reported.get(row.job_id, {})
        values = {key: curve.value for key, curve in own.items()}
        key, label = keys[row.pk]
        row.loss, row.lr = _first(values, LOSS_KEYS), _first(values, RATE_KEYS)
        metric = key_metric(row) or key_metrics.of_value(key, str(label), values.get(key))
        row.figure = metric.with_best(own[key].highest) if metric and row.preset and key in own else metric
        drawn = next((name for name in (key, *LOSS_KEYS) if name in own and own[name].points > 1), "")
        row.line = sparkline(row.job_id, row.job.attempt_number, drawn, own[drawn].points) if drawn else ""
        row.line_name = word(drawn) if drawn else ""


class _Reported(NamedTuple):
    """What a curve amounts to: its newest and its highest value, and its number of points."""

    value: float
    highest: float
    points: int


def _reported(trainings: Collection[TrainingJob], further: Collection[str] = ()) -> dict[int, dict[str, _Reported]]:
    """The curves of the newest attempt by job and key."""
    attempts = {training.job_id: training.job.attempt_number for training in trainings}
    curves = Curve.objects.filter(HAS_VALUE, attempt__job__in=attempts, key__in={*LOSS_KEYS, *RATE_KEYS, *further})
    reported: dict[int, dict[str, _Reported]] = {}
    for job, attempt, key, value, highest, points in curves.values_list(
        "attempt__job", "attempt__number", "key", "value", "highest", "count"
    ):
        if attempts[job] == attempt:
            reported.setdefault(job, {})[key] = _Reported(value, highest, points)
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
