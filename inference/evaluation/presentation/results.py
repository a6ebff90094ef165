"""Mistakes, altered copies, reliability of scores and thresholds by cost, as pages and reports show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from aiplatform.lib.numbers import finite
from inference.evaluation import calibration, error_datasets, results
from inference.evaluation.calibration import Costs, Reliability
from inference.evaluation.models import Evaluation
from inference.evaluation.presentation import charts
from inference.evaluation.presentation.charts import Chart, Frame, Key, Table
from inference.kit.task_kinds import TASKS

TABLE_STEP = 5  # thresholds from a row of the table of costs to the next

MISTAKE_LABELS = {
    "class": (gettext_lazy("Class"), gettext_lazy("detected with the wrong class")),
    "location": (gettext_lazy("Location"), gettext_lazy("correct class, but inaccurate box (IoU 0.1 to 0.5)")),
    "both": (gettext_lazy("Class and location"), gettext_lazy("neither class nor location is correct")),
    "duplicate": (gettext_lazy("Duplicate"), gettext_lazy("detected more than once")),
    "background": (gettext_lazy("Background"), gettext_lazy("no object")),
    "missed": (gettext_lazy("Missed"), gettext_lazy("an object without a prediction")),
}
ALTERED_LABELS = {
    "blur": gettext_lazy("Blur"),
    "noise": gettext_lazy("Noise"),
    "jpeg": gettext_lazy("JPEG"),
    "brightness": gettext_lazy("Overexposure"),
    "rotation": gettext_lazy("Rotated"),
}


def mistakes_of(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the context of the section of mistakes."""
    mistakes = error_datasets.read_mistakes(content)
    if mistakes is None:
        return None
    return {"told": mistakes, "rows": [(*MISTAKE_LABELS[kind.name], kind) for kind in mistakes.kinds]}


def robustness_of(content: Mapping[str, Any], task: str) -> dict[str, Any] | None:
    """Return the context of the section of altered copies: a row for each alteration, three strengths, and a chart."""
    robustness = content.get("robustness")
    clean = finite(robustness.get("clean")) if isinstance(robustness, dict) else None
    if not isinstance(robustness, dict) or clean is None or not isinstance(robustness.get("rows"), list):
        return None
    values: dict[str, dict[int, float | None]] = {}
    for row in robustness["rows"]:
        if isinstance(row, dict) and row.get("kind") in ALTERED_LABELS and row.get("strength") in (1, 2, 3):
            values.setdefault(row["kind"], {})[row["strength"]] = finite(row.get("value"))
    labels = {figure.key: figure.label for figure in TASKS[task].pages.figures} if task in TASKS else {}
    frame = Frame(high=3, top=max(1.0, clean))
    lines = [
        frame.line([(0, clean), *((at, value) for at, value in sorted(own.items()) if value is not None)],
                   str(ALTERED_LABELS[kind]), number)
        for number, (kind, own) in enumerate(values.items(), 1)
    ]  # fmt: skip
    figure = _(labels.get(str(robustness.get("figure")), str(robustness.get("figure"))))
    return {
        "images": int(finite(robustness.get("images")) or 0),
        "figure": figure,
        "clean": f"{clean:.3f}",
        "rows": [
            (number, ALTERED_LABELS[kind], [_lost(own.get(strength), clean) for strength in (1, 2, 3)])
            for number, (kind, own) in enumerate(values.items(), 1)
        ],
        "chart": Chart(
            label=_("%(figure)s by strength of the alteration") % {"figure": figure},
            across_label=_("Severity of the corruption"), up_label=figure,
            lines=lines, up=frame.up(charts.SHARES if frame.top == 1 else charts.count_ticks(frame.top)),
            across=frame.across([(0, _("none")), (1, _("low")), (2, _("medium")), (3, _("high"))]),
            keys=[Key(str(ALTERED_LABELS[kind]), "line", number) for number, kind in enumerate(values, 1)],
        ),
    }  # fmt: skip


def _lost(value: float | None, clean: float) -> tuple[str, str]:
    """A figure, and its distance from that of the images as they are."""
    return ("–", "") if value is None else (f"{value:.3f}", f"{value - clean:+.3f}")


def reliability_chart(reliability: Reliability) -> Chart:
    """Draw the share of right predictions by score, and the diagonal of calibrated scores."""
    frame = Frame()
    bars = [
        frame.bar(row.low, row.high, row.right,
                  _("%(low)s to %(high)s: %(right)s of %(count)s correct, mean confidence %(score)s") % {
                      "low": f"{row.low:.2f}", "high": f"{row.high:.2f}", "right": f"{row.right:.3f}",
                      "count": row.count, "score": f"{row.score:.3f}"})
        for row in reliability.bins if row.right is not None
    ]  # fmt: skip
    return Chart(
        label=_("Accuracy by confidence"), bars=bars, lines=[frame.line([(0, 0), (1, 1)], colour=8)],
        across=frame.across(charts.SHARES), up=frame.up(charts.SHARES),
        across_label=_("Confidence"), up_label=_("Share correct"),
        keys=[Key(_("predictions with this confidence"), "bar"), Key(_("perfect calibration"), "line", 8)],
        table=Table(
            [_("Score"), _("Prediction"), _("Share correct"), _("Mean score")],
            [[f"{row.low:.2f} – {row.high:.2f}", f"{row.count:,}", _three(row.right), _three(row.score)]
             for row in reliability.bins if row.count],
        ),
    )  # fmt: skip


def _three(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def cost_chart(costs: Costs) -> Chart:
    """Draw the cost by threshold, with the best one marked."""
    top = max(costs.costs)
    frame = Frame(top=top)
    best = _("%(cost)s at %(threshold)s") % {"cost": f"{costs.costs[costs.best]:,.6g}",
                                             "threshold": f"{costs.threshold:.2f}"}  # fmt: skip
    return Chart(
        label=_("Cost by confidence threshold"),
        lines=[frame.line(list(zip(costs.thresholds, costs.costs, strict=True)))],
        marks=[frame.mark(costs.threshold, costs.costs[costs.best], best)],
        across=frame.across(charts.SHARES), up=frame.up(charts.count_ticks(top)),
        across_label=_("Confidence threshold"), up_label=_("Cost"),
        keys=[Key(_("cost"), "line"), Key(_("lowest: %(where)s") % {"where": best}, "dot")],
        table=Table(
            [_("Confidence threshold"), _("Cost"), pgettext("count", "Wrong"), pgettext("count", "Missed")],
            [[f"{costs.thresholds[at]:.2f}", f"{costs.costs[at]:,.6g}", f"{costs.wrong[at]:,.0f}",
              f"{costs.missed[at]:,.0f}"] for at in sorted({*range(0, len(costs.costs), TABLE_STEP), costs.best})],
        ),
    )  # fmt: skip


def calibration_context(evaluation: Evaluation, *, wrong: float = 1.0, missed: float = 1.0) -> dict[str, Any]:
    """Return the context of the section: `reliability`, `costs` and their charts, each None if not available.

    Raises:
        Invalid: see `calibration.for_evaluation` and `calibration.costs`.
    """
    reliability = calibration.for_evaluation(evaluation)
    costs = calibration.costs(results.load(evaluation) or {}, wrong=wrong, missed=missed)
    return {
        "reliability": reliability,
        "reliability_chart": reliability and reliability_chart(reliability),
        "costs": costs,
        "cost_chart": costs and cost_chart(costs),
        "at_best": costs
        and {
            "threshold": f"{costs.threshold:.2f}",
            "cost": f"{costs.costs[costs.best]:,.6g}",
            "wrong": int(costs.wrong[costs.best]),
            "missed": int(costs.missed[costs.best]),
        },
    }
