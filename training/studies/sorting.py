"""How the trials of a study are sorted on its page: by number, state, value or a parameter. They are few: in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from training.catalog import metric_labels, param_labels
from training.studies.models import Study


@dataclass(frozen=True)
class Head:
    """The head of a column: its link, and the current sort direction ("ascending", "descending" or "")."""

    word: str
    label: str
    target: str
    direction: str
    numeric: bool
    title: str


def heads(study: Study, ordering: str) -> list[Head]:
    """Return the heads of number, state, each objective and each parameter."""
    columns = [("number", _("Trial"), True), ("state", _("State"), False)]
    columns += [
        (f"value:{index}", metric_labels.word(objective["key"]), True)
        for index, objective in enumerate(study.objectives)
    ]
    columns += [
        (f"param:{dimension['name']}", str(param_labels.label(dimension["name"])), dimension["type"] != "categorical")
        for dimension in study.space
    ]
    return [_head(word, label, ordering or "number", numeric) for word, label, numeric in columns]


def _head(word: str, label: str, ordering: str, numeric: bool) -> Head:
    direction = {word: "ascending", f"-{word}": "descending"}.get(ordering, "")
    target = f"-{word}" if direction == "ascending" else word
    return Head(word, label, target, direction, numeric, _("Sort by %(column)s") % {"column": label})


def ordered(rows: Sequence[dict[str, Any]], ordering: str) -> list[dict[str, Any]]:
    """Rows in the order of a word; those without a value come last either way. An unknown word leaves them."""
    word, falling = ordering.removeprefix("-"), ordering.startswith("-")
    kind, _colon, name = word.partition(":")

    def value(row: dict[str, Any]) -> Any:
        if kind == "param":
            return row["params"].get(name)
        if kind == "value" and name.isdecimal():
            return row["values"][int(name)] if int(name) < len(row["values"]) else None
        return row.get(kind) if kind in ("number", "state") else row["number"]

    there = [row for row in rows if value(row) is not None]
    missing = [row for row in rows if value(row) is None]

    def key(row: dict[str, Any]) -> tuple[bool, Any]:
        cell = value(row)
        return (isinstance(cell, str), cell)

    return sorted(there, key=key, reverse=falling) + missing
