"""Metrics of steps as pages show them: names of the catalogue, rounded values, the important ones first."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inference.kit.task_kinds import TASKS
from training.catalog import metric_labels

_TRAINING = list(metric_labels.LABELS)
#: Metrics of evaluations that their page does not show; last in lists.
FURTHER: Mapping[str, Any] = {
    "ap_small": gettext_lazy("AP of small objects"),
    "ap_medium": gettext_lazy("AP of medium objects"),
    "ap_large": gettext_lazy("AP of large objects"),
    "ar1": "AR1",
    "ar10": "AR10",
    "threshold": gettext_lazy("Confidence threshold"),
    "images": gettext_lazy("Images"),
    "images_seen": gettext_lazy("Images from training"),
}


@cache
def _catalogue() -> Mapping[str, tuple[int, str]]:
    """Return place and English label of the metrics of evaluations, by key."""
    entries: dict[str, tuple[int, str]] = {}
    for task in TASKS.values():
        for position, figure in enumerate(task.pages.figures):
            entries.setdefault(figure.key.lower(), (position, figure.label))
    return entries


def label(name: str) -> str:
    """Return the name of a metric: "ap50" → "AP50", "val/ap50" → "AP50 on validation"; unknown ones unchanged."""
    entry = _catalogue().get(name.lower())
    return _(entry[1]) if entry else str(FURTHER.get(name, metric_labels.word(name)))


def _rank(name: str) -> tuple[int, int, str]:
    """Return a sort key: metrics of evaluations, of trainings, further ones, unknown ones."""
    if entry := _catalogue().get(name.lower()):
        return 0, entry[0], ""
    for rank, names in enumerate((_TRAINING, list(FURTHER)), 1):
        if name in names:
            return rank, names.index(name), ""
    return 3, 0, name


def text(value: float | None) -> str:
    """Return a value with three digits behind the point, or four significant ones where it is large."""
    if value is None:
        return "–"
    return f"{value:.3f}" if abs(value) < 100 and value != int(value) else f"{value:,.4g}"


def rows(values: Mapping[str, float | None]) -> list[tuple[str, str]]:
    """Return names and values, each metric once, the important ones first.

    Metrics of other steps ("evaluate.ap50") are left out where the step has them itself.
    """
    shown: dict[str, tuple[tuple[int, int, str], str]] = {}
    for name, value in values.items():
        base = name.rpartition(".")[2]
        if base != name and base in values and values[base] == value:
            continue
        shown.setdefault(label(name), (_rank(name), text(value)))
    return [(name, formatted) for name, (_order, formatted) in sorted(shown.items(), key=lambda item: item[1][0])]


def of_task(task: str) -> list[tuple[str, str]]:
    """Return keys and names of the metrics that evaluations of a task show, in their order."""
    return [(figure.key, _(figure.label)) for figure in TASKS[task].pages.figures] if task in TASKS else []
