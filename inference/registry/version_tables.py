"""Versions of a model beside each other: what they are, cost and reached, and what they were trained with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, NotFound
from aiplatform.lib.numbers import finite
from inference.registry.models import Model, ModelVersion

MOST, USUAL = 8, 4
MOST_ROWS = 300
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


def chosen(model: Model, numbers: Sequence[int], base: int | None = None) -> tuple[list[ModelVersion], ModelVersion]:
    """Versions by their numbers, in that order, the newest that are in use where none are named; and the base.

    Raises:
        Invalid: more than eight, or a base that is not among them.
        NotFound: the model has no such version.
    """
    wanted = list(dict.fromkeys(numbers))
    if len(wanted) > MOST:
        raise Invalid(_("Choose at most %(most)s versions.") % {"most": MOST}, field="version")
    rows = model.versions.select_related("dataset_version__dataset", "model")
    if wanted:
        found = {row.number: row for row in rows.filter(number__in=wanted)}
        if missing := [str(number) for number in wanted if number not in found]:
            raise NotFound(_("The model has no version %(numbers)s.") % {"numbers": ", ".join(missing)})
        versions = [found[number] for number in wanted]
    else:
        used = [row for row in rows.order_by("-number")[:50] if not row.is_archived]
        versions = used[:USUAL]
    first = versions[-1] if versions else None
    if base is not None:
        first = next((row for row in versions if row.number == base), None)
        if first is None:
            raise Invalid(_("The base is one of the versions that are compared."), field="base")
    if first is None:
        raise NotFound(_("The model has no version that is in use."))
    return versions, first


def rows(versions: Sequence[ModelVersion], base: ModelVersion) -> list[Row]:
    """Everything versions can differ in."""
    place = [row.pk for row in versions].index(base.pk)
    found = [_row(kind, key, [value(one) for one in versions], place) for kind, key, value in FACTS]
    metrics = sorted({key for one in versions for key, value in one.metrics.items() if finite(value) is not None})
    found += [_row(FIGURE, key, [finite(one.metrics.get(key)) for one in versions], place) for key in metrics]
    params = sorted({key for one in versions for key in one.params})
    found += [_row(PARAM, key, [_plain(one.params.get(key)) for one in versions], place) for key in params]
    told = [row for row in found if any(value not in (None, "") for value in row.values)]
    return told[:MOST_ROWS]


def same_data(versions: Sequence[ModelVersion]) -> bool:
    """Whether all figures come from the same data, as their trainings say."""
    return len({one.dataset_label for one in versions}) == 1


def _row(kind: str, key: str, values: list[Any], place: int) -> Row:
    base = values[place]
    differences = [
        value - base if at != place and _is_number(value) and _is_number(base) else None
        for at, value in enumerate(values)
    ]
    return Row(kind, key, values, any(value != values[0] for value in values), differences)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, int | float | bool | str) else str(value)


def _signature(kind: str) -> Callable[[ModelVersion], str]:
    def told(version: ModelVersion) -> str:
        tensors = version.facts.get(kind)
        if not isinstance(tensors, list):
            return ""
        return ", ".join(f"{one.get('name')} {one.get('shape')}" for one in tensors[:8] if isinstance(one, dict))

    return told


def _speed(key: str) -> Callable[[ModelVersion], float | None]:
    def told(version: ModelVersion) -> float | None:
        speed = version.facts.get("speed")
        return finite(speed.get(key)) if isinstance(speed, dict) else None

    return told


def _processor(version: ModelVersion) -> str:
    speed = version.facts.get("speed")
    return str(speed.get("processor") or "") if isinstance(speed, dict) else ""


FACTS: tuple[tuple[str, str, Callable[[ModelVersion], Any]], ...] = (
    (ABOUT, "stage", lambda one: one.stage),
    (ABOUT, "task", lambda one: one.task),
    (ABOUT, "architecture", lambda one: one.architecture),
    (ABOUT, "preset", lambda one: one.preset),
    (ABOUT, "dataset", lambda one: one.dataset_label),
    (ABOUT, "source", lambda one: one.source),
    (ABOUT, "classes", lambda one: ", ".join(str(label.get("name")) for label in one.classes[:50])),
    (ABOUT, "inputs", _signature("inputs")),
    (ABOUT, "outputs", _signature("outputs")),
    (COST, "size_bytes", lambda one: one.size_bytes),
    (COST, "parameters", lambda one: finite(one.facts.get("parameters"))),
    (COST, "gflops", _speed("gflops")),
    (COST, "ms", _speed("ms")),
    (COST, "processor", _processor),
)
