"""What a new report begins with: panels of the runs somebody looked at, and the panels one can insert."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from django.utils.translation import gettext as _

from accounts.models import User
from training.catalog import metric_labels
from training.experiments import comparison
from training.experiments.models import Run
from training.programs import request_text

#: Panels to insert, ready to be changed.
SNIPPETS = {
    "runs": "filter: has {key}\ncolumns: [state, best({key}), params.lr]\nsort: -created\nlimit: 10",
    "curves": "filter: has {key}\nkeys: [{key}]\naxis: step\nlimit: 10",
    "scatter": "filter: has {key}\nx: params.lr\ny: best({key})\ncolour: preset\nlog_x: true",
    "figure": "filter: has {key}\nvalue: best({key})",
}
USUAL_KEY = "val/accuracy"
LOOKED_AT = 30  # newest runs among which the most frequent metric is found


def frequent_metric(user: User) -> str:
    """Return the metric of models that most of the user's newest runs have; validation comes first."""
    runs = list(Run.objects.visible_to(user).for_comparison().order_by("-pk")[:LOOKED_AT])
    figures = comparison.figures(runs)
    counts = Counter(key for own in figures for key in own)
    keys = [
        key for key in comparison.keys(figures) if key.startswith(("val/", "test/")) and not metric_labels.is_part(key)
    ]
    return max(keys, key=lambda key: (key in metric_labels.LABELS, counts[key]), default=USUAL_KEY)


def snippets(user: User) -> list[dict[str, str]]:
    """Kind, word and text of each panel that can be inserted."""
    key = frequent_metric(user)
    labels = {
        "runs": _("Table of runs"),
        "curves": _("Curves"),
        "scatter": _("Scatter plot"),
        "figure": _("Single value"),
    }
    return [
        {"kind": kind, "label": labels[kind], "text": block(kind, text.format(key=key))}
        for kind, text in SNIPPETS.items()
    ]


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
