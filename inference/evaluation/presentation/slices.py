"""Parts of the judged images, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from inference.evaluation.models import SPLIT_LABELS, Evaluation
from inference.evaluation.presentation.cells import cell
from inference.evaluation.slices import ASKED, COUNT, LIGHT, MARK, OBJECT, PIXELS, SPLIT, Slice
from inference.kit.task_kinds import TASKS

BY_LABELS = {
    SPLIT: gettext_lazy("Split"),
    PIXELS: gettext_lazy("Image size"),
    LIGHT: gettext_lazy("Brightness"),
    COUNT: gettext_lazy("Objects per image"),
    OBJECT: gettext_lazy("Object size"),
    MARK: gettext_lazy("Mark"),
    ASKED: gettext_lazy("Requested"),
}
NAME_LABELS = {
    (PIXELS, "small"): gettext_lazy("below 0.25 million pixels"),
    (PIXELS, "medium"): gettext_lazy("0.25 to 1 million pixels"),
    (PIXELS, "large"): gettext_lazy("1 to 4 million pixels"),
    (PIXELS, "huge"): gettext_lazy("from 4 million pixels on"),
    (LIGHT, "dark"): gettext_lazy("dark (below 85 of 255)"),
    (LIGHT, "medium"): gettext_lazy("medium (85 to 170)"),
    (LIGHT, "bright"): gettext_lazy("bright (from 170 on)"),
    (COUNT, "none"): pgettext_lazy("objects", "none"),
    (COUNT, "one"): gettext_lazy("one object"),
    (COUNT, "some"): gettext_lazy("2 to 5 objects"),
    (COUNT, "many"): gettext_lazy("more than 5 objects"),
    (OBJECT, "small"): gettext_lazy("small objects (below 32² pixels)"),
    (OBJECT, "medium"): gettext_lazy("medium objects (32² to 96²)"),
    (OBJECT, "large"): gettext_lazy("large objects (from 96² on)"),
}


def cells_of(part: Slice) -> list[Any]:
    """Return its metrics as text, for each evaluation; empty if there are none."""
    return [cell(value) for value in part.row.values] if part.row else []


Line = tuple[Any, Any, Slice, list[Any]]  # what it is a part by, which part, the part, its figures as text


@dataclass(frozen=True)
class SliceTable:
    """Parts of the images by one figure, and parts of the objects by another: one table each, the worst first."""

    figure: str
    images: list[Line]
    objects: list[Line]


def build_table(first: Evaluation, parts: Sequence[Slice]) -> SliceTable:
    """Return the slices as pages and reports show them."""
    images = [part for part in parts if part.by != OBJECT]
    rows = [part.row for part in images if part.row]
    figure = _(rows[0].label) if rows else _(TASKS[first.task].pages.figures[0].label)
    objects = [_line(part) for part in parts if part.by == OBJECT]
    return SliceTable(figure, [_line(part) for part in images], objects)


def _line(part: Slice) -> Line:
    return by_word(part), name_word(part), part, cells_of(part)


def by_word(part: Slice) -> Any:
    """Return the label of the property that a slice is defined by."""
    return BY_LABELS[part.by]


def name_word(part: Slice) -> Any:
    """Return the label of a slice."""
    if part.by == ASKED:
        return _("your images")
    if part.by == SPLIT:
        return SPLIT_LABELS.get(part.name, _("without split")) if part.name in ("none", *SPLIT_LABELS) else part.name
    return NAME_LABELS.get((part.by, part.name), part.name)
