"""Comparison of versions of a model: facts, cost, metrics and training parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, NotFound
from aiplatform.lib.numbers import finite
from inference.registry.models import Model, ModelVersion

MAX_VERSIONS, USUAL = 8, 4
MAX_ROWS = 300
ABOUT, COST, FIGURE, PARAM = "about", "cost", "figure", "param"


@dataclass(frozen=True)
class Row:
    """One fact of all versions, in their order; numbers as numbers, None where a version has none.

    `kind`: what a version is ("about"), costs ("cost"), reached ("figure") or was trained with ("param").
    `differences`: from the value of the base, of numbers.
    """

    kind: str
    key: str
    values: list[Any]
    differs: bool
    differences: list[float | None]


def select_versions(
    model: Model, numbers: Sequence[int], base: int | None = None
) -> tuple[list[ModelVersion], ModelVersion]:
    """Versions by their numbers, in that order, the newest that are in use where none are named; and the base.

    Raises:
        Invalid: more than eight, or a base that is not among them.
        NotFound: the model has no such version.
    """
    wanted = list(dict.fromkeys(numbers))
    if len(wanted) > MAX_VERSIONS:
        raise Invalid(_("Select at most %(most)s versions.") % {"most": MAX_VERSIONS}, field="version")
    rows = model.versions.select_related("dataset_version__dataset", "model")
    if wanted:
        versions_by_number = {row.number: row for row in rows.filter(number__in=wanted)}
        if missing := [str(number) for number in wanted if number not in versions_by_number]:
            raise NotFound(_("The model has no version %(numbers)s.") % {"numbers": ", ".join(missing)})
        versions = [versions_by_number[number] for number in wanted]
    else:
        used = [row for row in rows.order_by("-number")[:50] if not row.is_archived]
        versions = used[:USUAL]
    first = versions[-1] if versions else None
    if base is not None:
        first = next((row for row in versions if row.number == base), None)
        if first is None:
            raise Invalid(_("The baseline must be one of the compared versions."), field="base")
    if first is None:
        raise NotFound(_("The model has no active version."))
    return versions, first


def rows(versions: Sequence[ModelVersion], base: ModelVersion) -> list[Row]:
    """Return all rows in which versions can differ."""
    base_index = [row.pk for row in versions].index(base.pk)
    table = [_row(kind, key, [value(version) for version in versions], base_index) for kind, key, value in FACTS]
    metrics = sorted(
        {key for version in versions for key, value in version.metrics.items() if finite(value) is not None}
    )
    table += [
        _row(FIGURE, key, [finite(version.metrics.get(key)) for version in versions], base_index) for key in metrics
    ]
    params = sorted({key for version in versions for key in version.params})
    table += [
        _row(PARAM, key, [_plain_value(version.params.get(key)) for version in versions], base_index) for key in params
    ]
    filled = [row for row in table if any(value not in (None, "") for value in row.values)]
    return filled[:MAX_ROWS]


def same_data(versions: Sequence[ModelVersion]) -> bool:
    """Return whether all metrics come from the same data, as their trainings say."""
    return len({version.dataset_label for version in versions}) == 1


def _row(kind: str, key: str, values: list[Any], base_index: int) -> Row:
    base = values[base_index]
    differences = [
        value - base if index != base_index and _is_number(value) and _is_number(base) else None
        for index, value in enumerate(values)
    ]
    return Row(kind, key, values, any(value != values[0] for value in values), differences)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain_value(value: Any) -> Any:
    return value if value is None or isinstance(value, int | float | bool | str) else str(value)


def _signature(kind: str) -> Callable[[ModelVersion], str]:
    def tensors_text(version: ModelVersion) -> str:
        tensors = version.facts.get(kind)
        if not isinstance(tensors, list):
            return ""
        return ", ".join(
            f"{tensor.get('name')} {tensor.get('shape')}" for tensor in tensors[:8] if isinstance(tensor, dict)
        )

    return tensors_text


def _speed(key: str) -> Callable[[ModelVersion], float | None]:
    def read_value(version: ModelVersion) -> float | None:
        speed = version.facts.get("speed")
        return finite(speed.get(key)) if isinstance(speed, dict) else None

    return read_value


def _processor(version: ModelVersion) -> str:
    speed = version.facts.get("speed")
    return str(speed.get("processor") or "") if isinstance(speed, dict) else ""


FACTS: tuple[tuple[str, str, Callable[[ModelVersion], Any]], ...] = (
    (ABOUT, "stage", lambda row: row.stage),
    (ABOUT, "task", lambda row: row.task),
    (ABOUT, "architecture", lambda row: row.architecture),
    (ABOUT, "preset", lambda row: row.preset),
    (ABOUT, "dataset", lambda row: row.dataset_label),
    (ABOUT, "source", lambda row: row.source),
    (ABOUT, "classes", lambda row: ", ".join(str(label.get("name")) for label in row.classes[:50])),
    (ABOUT, "inputs", _signature("inputs")),
    (ABOUT, "outputs", _signature("outputs")),
    (COST, "size_bytes", lambda row: row.size_bytes),
    (COST, "parameters", lambda row: finite(row.facts.get("parameters"))),
    (COST, "gflops", _speed("gflops")),
    (COST, "ms", _speed("ms")),
    (COST, "processor", _processor),
)
