"""Charts of the distributions of inputs and predictions of an endpoint, beside those of the reference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inference.evaluation.presentation.charts import Chart, Frame, Key, count_ticks
from inference.kit.models.statistics import SHAPES, SHARPNESS, SIZES
from inference.registry.drift import Drift
from inference.serving.monitoring.labels import COMPARED

REFERENCE_COLOR = 8  # the gray, dashed line of the charts


@dataclass(frozen=True)
class Axis:
    """The values of a feature: the name of its axis with the unit, and marks at places 0..1."""

    name: Any
    marks: Sequence[tuple[float, str]]


def _percents() -> list[tuple[float, str]]:
    return [(share, f"{100 * share:.0f}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]


def _place(value: float, bounds: tuple[float, float]) -> float:
    return (value - bounds[0]) / (bounds[1] - bounds[0])


def _powers(bounds: tuple[float, float], names: Mapping[int, str]) -> list[tuple[float, str]]:
    return [(_place(power, bounds), name) for power, name in names.items()]


AXES: Mapping[str, Axis] = {
    "scores": Axis(gettext_lazy("Confidence (%)"), _percents()),
    "brightness": Axis(gettext_lazy("Brightness (%)"), _percents()),
    "contrast": Axis(gettext_lazy("Contrast (%)"), _percents()),
    "saturation": Axis(gettext_lazy("Saturation (%)"), _percents()),
    "sharpness": Axis(
        gettext_lazy("Variance of edges"),
        _powers(SHARPNESS, {-5: "10⁻⁵", -4: "10⁻⁴", -3: "10⁻³", -2: "0.01", -1: "0.1"}),
    ),
    "size": Axis(
        gettext_lazy("Image size (pixels)"),
        _powers(SIZES, {3: "1k", 4: "10k", 5: "100k", 6: "1M", 7: "10M", 8: "100M"}),
    ),
    "shape": Axis(
        gettext_lazy("Width : height"), _powers(SHAPES, {-3: "1:8", -2: "1:4", -1: "1:2", 0: "1:1", 1: "2:1", 2: "4:1"})
    ),
}


def chart(drift: Drift) -> Chart:
    """Return the distribution of a feature: bars of the period, and a line of the reference where there is one."""
    axis, count = AXES[drift.name], len(drift.now)
    percents = [[100 * share for share in shares] for shares in (drift.before, drift.now)]
    top = 10 * math.ceil(max(*percents[0], *percents[1], 1.0) / 10)
    frame, edges = Frame(top=top), [at / count for at in range(count + 1)]
    names = _("Period"), _("Reference")
    texts = [f"{names[0]}: {now:.1f} % · {names[1]}: {before:.1f} %" for before, now in zip(*percents, strict=True)]
    has_reference = any(drift.before)
    steps = [pair for at, value in enumerate(percents[0]) for pair in ((edges[at], value), (edges[at + 1], value))]
    keys = [Key(_("Period"), "bar")]
    return Chart(
        label=_("%(feature)s: distribution in the period and in the reference") % {"feature": COMPARED[drift.name]},
        across_label=str(axis.name),
        up_label=_("Predictions (%)") if drift.name == "scores" else _("Images (%)"),
        bars=[frame.bar(edges[at], edges[at + 1], value, texts[at]) for at, value in enumerate(percents[1])],
        lines=[frame.line(steps, _("Reference"), REFERENCE_COLOR)] if has_reference else [],
        across=frame.across(axis.marks),
        up=frame.up(count_ticks(top)),
        keys=[*keys, Key(_("Reference"), "line", REFERENCE_COLOR)] if has_reference else keys,
    )
