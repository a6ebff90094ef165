"""Labels of compared versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from aiplatform.templatetags.ui import bytes_
from inference.registry import task_labels, version_tables
from inference.registry.models import ModelVersion, Stage
from inference.registry.task_labels import NONE
from inference.registry.version_tables import Row
from training.catalog import metric_labels, param_labels

LABELS = {
    "stage": gettext_lazy("Stage"), "task": gettext_lazy("Task"), "architecture": gettext_lazy("Architecture"),
    "preset": gettext_lazy("Preset"), "dataset": gettext_lazy("Dataset"), "source": gettext_lazy("Source"),
    "classes": gettext_lazy("Classes"), "inputs": gettext_lazy("Inputs"), "outputs": gettext_lazy("Outputs"),
    "size_bytes": gettext_lazy("Size"), "parameters": gettext_lazy("Parameters"),
    "gflops": gettext_lazy("GFLOPs per image"), "ms": gettext_lazy("Milliseconds per image"),
    "processor": gettext_lazy("measured on"),
}  # fmt: skip
WORDS: dict[str, dict[str, Any]] = {
    "stage": dict(Stage.choices),
    "source": dict(ModelVersion.Source.choices),
}
MAX_LENGTH = 120


@dataclass(frozen=True)
class Line:
    """A row as it is shown: (value, difference from the base or "") of each version."""

    kind: str
    label: str
    cells: list[tuple[str, str]]


def lines(versions: Sequence[ModelVersion], base: ModelVersion, *, everything: bool) -> list[Line]:
    """Rows that differ, or all of them."""
    return [_line(row) for row in version_tables.rows(versions, base) if everything or row.differs]


def _line(row: Row) -> Line:
    cells = [
        (_format_value(row.key, value), _difference(row.key, difference))
        for value, difference in zip(row.values, row.differences, strict=True)
    ]
    return Line(row.kind, _label(row), cells)


def _label(row: Row) -> str:
    if row.kind == version_tables.FIGURE:
        return str(metric_labels.word(row.key))
    if row.kind == version_tables.PARAM:
        return str(param_labels.label(row.key))
    return str(LABELS[row.key])


def _format_value(key: str, value: Any) -> str:
    if value is None or value == "":
        return NONE
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if key == "size_bytes":
        return bytes_(value)
    if isinstance(value, int | float):
        return _number(value)
    labels = dict(task_labels.choices()) if key == "task" else WORDS.get(key, {})
    label = str(labels.get(value, value))
    return label if len(label) <= MAX_LENGTH else f"{label[: MAX_LENGTH - 1]}…"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def _difference(key: str, difference: float | None) -> str:
    if not difference:
        return ""
    if key == "size_bytes":
        return f"{'+' if difference > 0 else '−'}{bytes_(abs(difference))}"
    return f"{'+' if difference > 0 else '−'}{_number(abs(difference))}"
