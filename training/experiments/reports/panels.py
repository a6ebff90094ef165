"""Panels: fenced blocks of a report that show runs. What each kind is called, and which fields it takes.

```curves
filter: experiment = "rates" and params.lr < 0.1
keys: [val/accuracy, train/loss]
group_by: params.lr
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.markdown import Fence
from training.experiments import comparison, table
from training.experiments.reports import fields
from training.experiments.reports.fields import Read
from training.programs import request_text

RUNS, CURVES, SCATTER, FIGURE = "runs", "curves", "scatter", "figure"
MAX_ROWS, MAX_POINTS, MAX_NAMED = 100, 500, 100
MAX_LENGTH = 10_000  # characters of one panel

_WHICH: dict[str, Read] = {
    "title": fields.text(fields.LONGEST_TITLE),
    "filter": fields.text(fields.LONGEST_FILTER),
    "sort": fields.text(fields.LONGEST_COLUMN),
}
#: What the fields of each kind are read by.
KINDS: dict[str, Mapping[str, Read]] = {
    RUNS: {
        **_WHICH,
        "runs": fields.numbers(MAX_NAMED),
        "columns": fields.words(table.MAX_COLUMNS),
        "limit": fields.integer(1, MAX_ROWS),
    },
    CURVES: {
        **_WHICH,
        "runs": fields.numbers(comparison.MAX_RUNS),
        "limit": fields.integer(1, comparison.MAX_RUNS),
        "keys": fields.words(comparison.MAX_KEYS),
        "axis": fields.one_of(*comparison.AXES),
        "smoothing": fields.share(0.99),
        "log": fields.flag,
        "group_by": fields.text(fields.LONGEST_COLUMN),
    },
    SCATTER: {
        **_WHICH,
        "runs": fields.numbers(MAX_NAMED),
        "limit": fields.integer(1, MAX_POINTS),
        "x": fields.number_column,
        "y": fields.number_column,
        "colour": fields.text(fields.LONGEST_COLUMN),
        "log_x": fields.flag,
        "log_y": fields.flag,
    },
    FIGURE: {**_WHICH, "runs": fields.numbers(MAX_NAMED), "value": fields.number_column},
}
NEEDED = {RUNS: (), CURVES: ("keys",), SCATTER: ("x", "y"), FIGURE: ("value",)}
DEFAULTS: dict[str, Mapping[str, Any]] = {
    RUNS: {"limit": 20},
    CURVES: {"limit": comparison.MAX_RUNS, "axis": "step", "smoothing": 0.0, "log": False, "group_by": ""},
    SCATTER: {"limit": MAX_POINTS, "colour": "", "log_x": False, "log_y": False},
    FIGURE: {},
}


@dataclass(frozen=True)
class Panel:
    """One panel: its kind, the line of its fence, and its fields with their defaults."""

    kind: str
    line: int
    values: Mapping[str, Any]

    @property
    def title(self) -> str:
        return self.values["title"]

    @property
    def filter(self) -> str:
        """The runs it is about, as an expression."""
        if self.runs:
            return f"id in ({', '.join(map(str, self.runs))})"
        return self.values["filter"]

    @property
    def runs(self) -> tuple[int, ...]:
        """The runs it names by their numbers, in this order; () where a filter finds them."""
        return self.values["runs"]

    @property
    def columns(self) -> list[str]:
        """Columns of the run table that it shows or is drawn of."""
        named = {RUNS: (), CURVES: ("group_by",), SCATTER: ("x", "y", "colour"), FIGURE: ("value",)}[self.kind]
        more = self.values.get("columns") or ()
        return list(dict.fromkeys([*more, *(self.values[name] for name in named if self.values[name])]))


def read(fence: Fence) -> Panel:
    """Return the panel that a fenced block describes.

    Raises:
        Invalid: everything that is wrong with it, each by its line.
    """
    readers = KINDS[fence.word]
    refusals = Refusals()
    if len(fence.text) > MAX_LENGTH:
        raise _wrong(fence.line, _("A panel can have at most %(most)s characters.") % {"most": MAX_LENGTH})
    entries, lines = _fields(fence)
    values: dict[str, Any] = {}
    for name, value in entries.items():
        line = lines.get(name, fence.line)
        with refusals:
            if name not in readers:
                message = _("A panel “%(kind)s” has no field %(name)s. Available fields: %(known)s.")
                raise _wrong(line, message % {"kind": fence.word, "name": name[:60], "known": ", ".join(readers)})
            try:
                values[name] = readers[name](value)
            except Invalid as exc:
                message = _("%(name)s is invalid: %(why)s.") % {"name": name, "why": exc.message}
                raise _wrong(line, message) from None
    for name in NEEDED[fence.word]:
        with refusals:
            if name not in entries:
                message = _("A panel “%(kind)s” needs the field %(name)s.") % {"kind": fence.word, "name": name}
                raise _wrong(fence.line, message)
    with refusals:
        if "runs" in entries and "filter" in entries:
            raise _wrong(lines.get("filter", fence.line), _("Specify runs by numbers or by a filter, not both."))
    refusals.end()
    usual = {"title": "", "filter": "", "sort": "", "runs": (), **DEFAULTS[fence.word]}
    return Panel(fence.word, fence.line, {**usual, **values})


def _fields(fence: Fence) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the fields of a block, and the line of each field."""
    text = "\n" * fence.line + fence.text  # so that what is refused is named by lines of the whole text
    try:
        return request_text.read(text), request_text.lines_of(text)
    except Invalid as exc:
        if "line" in exc.facts:
            raise
        raise _wrong(fence.line, exc.message) from None


def check(panel: Panel, user: User) -> None:
    """Refuse a filter, a column or an order that is not valid.

    Raises:
        Invalid: each of them, by the line of the panel.
    """
    try:
        table.check(user, text=panel.filter, columns=panel.columns, sort=panel.values["sort"])
    except Invalid as exc:
        refusals = Refusals()
        for error in exc.every:
            with refusals:
                raise _wrong(panel.line, error.message) from None
        refusals.end()


def _wrong(line: int, sentence: str) -> Invalid:
    return Invalid(_("Line %(line)s: %(sentence)s") % {"line": line, "sentence": sentence}, field="text")
