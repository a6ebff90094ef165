"""The figures of a summary, as text."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from inference.task_kinds import TASKS
from inference.task_kinds.served import Figure

NONE = "–"


def tiles(task: str, summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Summary tiles: [{"key", "label", "help", "value", "live"}], values as text; none for an unknown task."""
    figures = TASKS[task].pages.figures if task in TASKS else ()
    return [_tile(figure, summary) for figure in figures]


def _tile(figure: Figure, summary: dict[str, Any]) -> dict[str, Any]:
    value = summary.get(figure.key)
    return {
        "key": figure.key,
        "label": _(figure.label),
        "help": figure.help and _(figure.help),
        "value": NONE if value is None else f"{value:.3f}",
        "live": figure.live,
        "manual": figure.manual if figure.manual != _(figure.label) else "",
    }
