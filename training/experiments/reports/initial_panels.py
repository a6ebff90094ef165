"""What a new report begins with: panels of the runs somebody looked at, and the panels one can insert."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from training.programs import request_text

#: Panels to insert, ready to be changed.
SNIPPETS = {
    "runs": "filter: created > 2026-01-01\ncolumns: [state, best(val/accuracy), params.lr]\nsort: -created\nlimit: 10",
    "curves": "filter: state = completed\nkeys: [val/accuracy]\naxis: step\ngroup_by: params.lr\nlimit: 10",
    "scatter": "filter: has val/accuracy\nx: params.lr\ny: best(val/accuracy)\ncolour: preset\nlog_x: true",
    "figure": "title: Best accuracy\nfilter: state = completed\nvalue: best(val/accuracy)",
}


def snippets() -> list[dict[str, str]]:
    """Kind, word and text of each panel that can be inserted."""
    labels = {
        "runs": _("Table of runs"),
        "curves": _("Curves"),
        "scatter": _("Scatter plot"),
        "figure": _("Single value"),
    }
    return [{"kind": kind, "label": labels[kind], "text": block(kind, text)} for kind, text in SNIPPETS.items()]


def block(kind: str, text: str) -> str:
    """Return a panel as a fenced block of a text."""
    return f"```{kind}\n{text.strip()}\n```\n"


def of_runs(numbers: Sequence[int], keys: Sequence[str]) -> str:
    """A text about these runs: their table, and curves of these keys."""
    parts = [block("runs", request_text.written({"runs": list(numbers)}))]
    if keys:
        parts.append(block("curves", request_text.written({"runs": list(numbers), "keys": list(keys)})))
    return "\n".join(parts)


def of_table(filter: str, columns: Sequence[str], sort: str) -> str:
    """Return a text with the table of runs in its current view."""
    fields = {"filter": filter, "columns": list(columns), "sort": sort}
    return block("runs", request_text.written({name: value for name, value in fields.items() if value}))
