"""Figures with their intervals and differences, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from inference.evaluation.differences import BETTER, NO_DIFFERENCE, WORSE, Value
from inference.registry.task_labels import NONE

VERDICTS = {
    BETTER: (gettext_lazy("better"), "ok"),
    WORSE: (gettext_lazy("worse"), "fail"),
    NO_DIFFERENCE: (gettext_lazy("not significant"), "info"),
}


@dataclass(frozen=True)
class Cell:
    """One figure of one evaluation, as text."""

    value: str
    interval: str = ""
    difference: str = ""
    difference_interval: str = ""
    verdict: tuple[Any, str] | None = None


def cell(value: Value) -> Cell:
    """Return a metric with its interval and its difference as text."""
    if value.value is None:
        return Cell(NONE)
    interval = f"{value.low:.3f} … {value.high:.3f}" if value.low is not None and value.high is not None else ""
    if value.difference is None:
        return Cell(f"{value.value:.3f}", interval)
    difference = value.difference
    return Cell(
        f"{value.value:.3f}",
        interval,
        f"{difference.value:+.3f}",
        f"{difference.low:+.3f} … {difference.high:+.3f}",
        VERDICTS[difference.verdict],
    )
