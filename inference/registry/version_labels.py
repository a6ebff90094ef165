"""Labels of compared versions."""

from __future__ import annotations

import re
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
    "classes": gettext_lazy("Classes"), "inputs": gettext_lazy("Input size (px)"),
    "size_bytes": gettext_lazy("Size"), "parameters": gettext_lazy("Parameters"),
    "gflops": gettext_lazy("GFLOPs per image"), "ms": gettext_lazy("Milliseconds per image"),
    "processor": gettext_lazy("measured on"),
}  # fmt: skip
WORDS: dict[str, dict[str, Any]] = {
    "stage": dict(Stage.choices),
    "source": dict(ModelVersion.Source.choices),
}
MAX_LENGTH = 120
LOWER_IS_BETTER = {"loss", "error", "err", "rmse", "mse", "mae", "nme"}  # words of the keys of metrics
NEUTRAL = {"steps", "epochs", "seconds", "share", "slowdown", "weights", "planned"}  # neither value is better
ORDER = {kind: index for index, kind in enumerate((version_tables.FIGURE, version_tables.COST, version_tables.ABOUT))}
SHAPE = re.compile(r"\[([^\[\]]*)\]")  # of an input as a version table has it: "images [1, 3, 128, 160]"


@dataclass(frozen=True)
class Line:
    """A row as it is shown: (value, difference from the base or "", whether it is the best) of each version."""

    kind: str
    label: str
    cells: list[tuple[str, str, bool]]


def lines(versions: Sequence[ModelVersion], base: ModelVersion, *, everything: bool) -> list[Line]:
    """Rows that differ, or all of them, metrics first; names and shapes of tensors only as the size of the input."""
    rows = [row for row in version_tables.rows(versions, base) if row.key != "outputs" and (everything or row.differs)]
    has_same_data = version_tables.same_data(versions)
    shown = [_line(row, has_same_data) for row in sorted(rows, key=lambda row: ORDER.get(row.kind, len(ORDER)))]
    return [line for line in shown if any(value != NONE for value, _change, _best in line.cells)]


def _line(row: Row, has_same_data: bool) -> Line:
    best = _best(row) if row.kind == version_tables.COST or has_same_data else None
    cells = [
        (_format_value(row.key, value), _difference(row.key, difference), best is not None and value == best)
        for value, difference in zip(row.values, row.differences, strict=True)
    ]
    return Line(row.kind, _label(row), cells)


def _best(row: Row) -> float | None:
    """Return the best value of a metric or of what a version costs; None where values do not differ."""
    tokens = set(re.split(r"[^a-z0-9]+", row.key.lower()))
    if row.kind not in (version_tables.FIGURE, version_tables.COST) or tokens & NEUTRAL:
        return None
    values = [value for value in row.values if isinstance(value, int | float)]
    if len(set(values)) < 2:
        return None
    is_low = row.kind == version_tables.COST or tokens & LOWER_IS_BETTER
    return min(values) if is_low else max(values)


def _input_size(value: str) -> str:
    """Return "160 × 128" of "images [1, 3, 128, 160]"; nothing where no input is an image of a fixed size."""
    for shape in SHAPE.findall(value):
        sides = [side.strip() for side in shape.split(",")]
        height, width = sides[-2:] if len(sides) == 4 else ("", "")
        if height.isdecimal() and width.isdecimal():
            return f"{width} × {height}"
    return ""


def _label(row: Row) -> str:
    if row.kind == version_tables.FIGURE:
        return str(metric_labels.word(row.key))
    if row.kind == version_tables.PARAM:
        return str(param_labels.label(row.key))
    return str(LABELS[row.key])


def _format_value(key: str, value: Any) -> str:
    if key == "inputs" and isinstance(value, str):
        value = _input_size(value)
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
