"""Labels and order of metrics."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from inference.kit.task_kinds import TASKS


def headline(task: str, metrics: dict[str, Any]) -> str:
    """The one figure a list shows: "AP50 0.912"; "" where there is none."""
    if task not in TASKS:
        return ""
    pages = TASKS[task].pages
    labels = {figure.key: figure.label for figure in pages.figures}
    for key in pages.headline:
        for name in (key, f"val/{key}", f"test/{key}"):
            value = metrics.get(name)
            if isinstance(value, int | float):
                return f"{_(labels[key])} {value:.3f}"
    return ""


def texts() -> list[str]:
    """Every text of every task that a page translates."""
    labels = [measure.label for task in TASKS.values() for measure in task.measures]
    labels += [mean.label for task in TASKS.values() for mean in task.means]
    labels += [layout.label for task in TASKS.values() for layout in task.answer.layouts]
    return [*labels, *(text for task in TASKS.values() for text in task.pages.texts())]
