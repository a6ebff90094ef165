"""The figures of a summary, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.numbers import finite
from inference.evaluation.models import Evaluation
from inference.kit.contracts.served_task import Figure
from inference.kit.task_kinds import TASKS
from inference.registry.task_labels import NONE

RATES = ("precision", "recall", "f1")  # depend on the score threshold


def tiles(task: str, content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Summary tiles: [{"key", "label", "help", "value", "live"}], values as text; none for an unknown task.

    Args:
        content: of an evaluation, with its `summary` and its `classes`.
    """
    return [_tile(figure, content["summary"]) for figure in _figures(task) if not _says_nothing(figure, content)]


def left_out(task: str, content: Mapping[str, Any]) -> str:
    """Return why a metric of the task is not shown; "" if all are."""
    hidden = [figure for figure in _figures(task) if _says_nothing(figure, content)]
    if not hidden:
        return ""
    message = _("%(figures)s is omitted: with %(count)s classes or fewer it is always 1.")
    names = ", ".join(_(figure.label) for figure in hidden)
    return message % {"figures": names, "count": hidden[0].least_classes - 1}


def conditions(evaluation: Evaluation, summary: Mapping[str, Any]) -> str:
    """Return the split and the score threshold that precision, recall and F1 hold for; "" without a summary."""
    if not summary or evaluation.is_scripted:
        return ""
    text = _("Split: %(split)s.") % {"split": evaluation.split_word}
    figures = [figure for figure in _figures(evaluation.task) if figure.key in RATES and figure.key in summary]
    names = ", ".join(_(figure.label) for figure in figures)
    threshold = finite(summary.get("threshold"))
    if not names or threshold is None:
        return text
    if threshold <= 0:
        rule = _("%(metrics)s: the most probable class of each image.") % {"metrics": names}
    else:
        rule = _("%(metrics)s: at confidence threshold %(threshold)s.") % {
            "metrics": names,
            "threshold": f"{threshold:.2f}",
        }
    return f"{text} {rule}"


def shown_keys(task: str, classes: int) -> set[str]:
    """Keys of the figures that say something of a dataset with so many classes."""
    return {figure.key for figure in _figures(task) if classes >= figure.least_classes}


def _figures(task: str) -> tuple[Figure, ...]:
    return TASKS[task].pages.figures if task in TASKS else ()


def _says_nothing(figure: Figure, content: Mapping[str, Any]) -> bool:
    classes = content.get("classes")
    return isinstance(classes, list) and bool(classes) and len(classes) < figure.least_classes


def _tile(figure: Figure, summary: Mapping[str, Any]) -> dict[str, Any]:
    value = summary.get(figure.key)
    return {
        "key": figure.key,
        "label": _(figure.label),
        "help": figure.help and _(figure.help),
        "value": NONE if value is None else f"{value:.3f}",
        "live": figure.live,
        "manual": figure.manual if figure.manual != _(figure.label) else "",
    }
