"""Labels and order of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.numbers import finite
from inference.kit.task_kinds import TASKS
from training.catalog import key_metrics
from training.catalog.key_metrics import KeyMetric

#: Keys of trainings that evaluations call otherwise.
TRAINING_KEYS = {"ap": "map"}


def key_metric(task: str, metrics: Mapping[str, Any], split: str = "") -> KeyMetric | None:
    """Return the metric that rates a model, of the final metrics of a training or of an evaluation; None without any.

    Args:
        split: the one an evaluation measured; the metrics of a training name theirs.
    """
    if task not in TASKS:
        return None
    pages = TASKS[task].pages
    labels = {figure.key: figure.label for figure in pages.figures}
    metric = key_metrics.find(metrics, [(key, _(labels[key])) for key in pages.headline])
    return replace(metric, split=metric.split or split) if metric else None


def overall_metrics(task: str, metrics: Mapping[str, Any]) -> list[KeyMetric]:
    """Return the final metrics over all classes, the key metric first."""
    first = key_metric(task, metrics)
    rows = [
        row
        for key, value in metrics.items()
        if key.count("/") < 2 and (row := key_metrics.of_value(key, _short(task, key), value)) is not None
    ]
    return sorted(rows, key=lambda row: row != first)


@dataclass(frozen=True)
class ClassMetrics:
    """A metric by class: its name with the split, and (class, value) in the order of the program."""

    name: str
    rows: Sequence[tuple[str, float]]


def metrics_by_class(task: str, metrics: Mapping[str, Any]) -> ClassMetrics | None:
    """Return the metric that the final metrics have for single classes, as in `val/ap50/cell`; None without any."""
    tables: dict[str, list[tuple[str, float]]] = {}
    for key, value in metrics.items():
        split, _slash, rest = key.partition("/")
        name, _slash, label = rest.partition("/")
        number = finite(value)
        if label and number is not None:
            tables.setdefault(f"{split}/{name}", []).append((label, number))
    if not tables:
        return None
    key, rows = next(iter(tables.items()))
    split = key.partition("/")[0]
    return ClassMetrics(f"{_short(task, key)} · {split}", rows)


def _short(task: str, key: str) -> str:
    """The label of a metric without its split: "AP50" of `val/ap50`; the key itself where no task has one."""
    name = key.rpartition("/")[2]
    labels = {figure.key: figure.label for figure in TASKS[task].pages.figures} if task in TASKS else {}
    label = labels.get(TRAINING_KEYS.get(name, name))
    return _(label) if label else label_of(name)


def label_of(key: str) -> str:
    """The label of a metric of any task, such as one a rule names; the key itself where no task has it."""
    labels = (figure.label for task in TASKS.values() for figure in task.pages.figures if figure.key == key)
    label = next(labels, "")
    return _(label) if label else key


def sort_keys() -> list[str]:
    """The keys of key metrics, of evaluations and of model versions, in the order in which they are looked for."""
    keys = [key for task in TASKS.values() for key in task.pages.headline]
    return [name for key in dict.fromkeys(keys) for name in (key, f"val/{key}", f"test/{key}")]


def texts() -> list[str]:
    """Every text of every task that a page translates."""
    labels = [measure.label for task in TASKS.values() for measure in task.measures]
    labels += [mean.label for task in TASKS.values() for mean in task.means]
    labels += [layout.label for task in TASKS.values() for layout in task.answer.layouts]
    return [*labels, *(text for task in TASKS.values() for text in task.pages.texts())]
