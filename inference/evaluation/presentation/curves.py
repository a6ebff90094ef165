"""Figures of an evaluation at each score threshold: one source for the curves of its page and of its report.

The curve of all classes is the way that the mean precision and recall take as the threshold falls, so that the point of
a threshold lies on it. (The mean of the curves of single classes at equal recall, by which average precisions are
told, is another one: no threshold reaches its points.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.numbers import finite
from inference.evaluation.presentation import charts
from inference.evaluation.presentation.charts import Chart, Frame
from inference.evaluation.presentation.tiles import RATES
from inference.kit.samples import counts


def means(content: Mapping[str, Any]) -> list[dict[str, float]]:
    """Return the means over the classes at each threshold: precision, recall, f1, and the number of classes `answered`.

    The means at the threshold of the evaluation are those of its summary, so that pages, reports and the API state
    the same values. Empty where classes have no counts by threshold, of tasks without scores.
    """
    thresholds, classes = content.get("thresholds"), content.get("classes", [])
    present = [entry for entry in classes if entry.get("truths")]
    if (
        not isinstance(thresholds, list)
        or not present
        or not all(_has_counts(entry, len(thresholds)) for entry in present)
    ):
        return []
    summary = content.get("summary") or {}
    own_index = own_place(thresholds, finite(summary.get("threshold")) or 0.0)
    stored = {name: summary[name] for name in RATES if finite(summary.get(name)) is not None}
    return [
        {
            **counts.mean_rates(present, index),
            **(stored if index == own_index else {}),
            "answered": sum(entry["tp"][index] + entry["fp"][index] > 0 for entry in present),
        }
        for index in range(len(thresholds))
    ]


def own_place(thresholds: Sequence[float], threshold: float) -> int:
    """Return the index of the threshold that is closest to that of the evaluation; 0 without thresholds."""
    return min(range(len(thresholds)), key=lambda at: abs(thresholds[at] - threshold)) if thresholds else 0


def _has_counts(entry: Mapping[str, Any], length: int) -> bool:
    return all(isinstance(entry.get(name), list) and len(entry[name]) == length for name in ("tp", "fp"))


def draw(content: Mapping[str, Any]) -> list[tuple[str, Chart]]:
    """Draw precision by recall, and F1 by threshold, over all classes, for print."""
    rows = means(content)
    if not rows:
        return []
    points = [(row["recall"], row["precision"]) for row in reversed(rows) if row["answered"]]
    by_score = [(float(at), row["f1"]) for at, row in zip(content["thresholds"], rows, strict=True)]
    share = _("%(name)s (0 to 1)")
    names = (_("Recall"), _("Precision"), _("Confidence threshold"), "F1")
    recall, precision, score, f1 = (share % {"name": name} for name in names)
    return [
        (_("Precision-recall curve"), _chart(_("Precision-recall curve"), points, recall, precision)),
        (_("F1 by confidence threshold"), _chart(_("F1 by confidence threshold"), by_score, score, f1)),
    ]


def _chart(label: str, pairs: Sequence[tuple[float, float]], across: str, up: str) -> Chart:
    frame = Frame()
    return Chart(
        label=label, across_label=across, up_label=up, lines=[frame.line(pairs)],
        across=frame.across(charts.SHARES), up=frame.up(charts.SHARES),
    )  # fmt: skip


def unanswered(content: Mapping[str, Any]) -> set[Any]:
    """Return ids of classes without predictions at the threshold of the evaluation: they have no precision."""
    summary, confusion = content.get("summary") or {}, content.get("confusion") or {}
    thresholds, matrix = content.get("thresholds") or [], confusion.get("matrix") or []
    least = finite(summary.get("threshold")) or 0.0
    near = own_place(thresholds, least)
    class_ids = set()
    for index, entry in enumerate(content.get("classes", [])):
        if thresholds and _has_counts(entry, len(thresholds)):
            answers = entry["tp"][near] + entry["fp"][near]
        elif all(isinstance(row, list) and index < len(row) for row in matrix) and matrix:
            answers = sum(row[index] for row in matrix)
        else:
            continue
        if not answers:
            class_ids.add(entry.get("id"))
    return class_ids
