"""A report as one person sees it: its text as HTML with each panel drawn, within a time."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import markdown
from aiplatform.lib.errors import DomainError
from training.experiments.reports import documents, panel_data, panels
from training.experiments.reports import svg as drawing
from training.experiments.reports.documents import Broken
from training.experiments.reports.panel_data import Chosen, Curve, Drawn
from training.experiments.reports.panels import Panel
from training.experiments.reports.svg import Dot

BUDGET_S, BUDGET_CHARS = 10.0, 8_000_000  # of all panels together; those that begin later are left out, and say so


@dataclass
class Shown:
    """A report that was drawn.

    Attributes:
        runs: numbers and names of all runs that stand in it.
        hidden: how many runs its panels leave out for this reader, each panel for itself.
        panels: how many there are.
        late: panels that were not drawn in time.
    """

    html: SafeString = field(default_factory=SafeString)
    runs: dict[int, str] = field(default_factory=dict)
    hidden: int = 0
    panels: int = 0
    late: int = 0


def show(
    text: str, reader: User, author: User | None, *, apart: bool = False, first: int = 1, on_page: bool = True
) -> Shown:
    """Draw a report.

    Args:
        author: who saved the text, with whose rights is counted what the reader may not see.
        apart: for a file that leaves the site: without links into it.
        first: number of the panel to begin with; those before it are left out.
        on_page: whether the address of the page takes `?panel=`, so that what was left out can be asked for.
    """
    shown = Shown()
    begun = time.monotonic()
    fences: dict[int, SafeString] = {}
    long = 0
    for number, part in enumerate(documents.parts(text), 1):
        shown.panels = number
        late = number > first and (time.monotonic() - begun > BUDGET_S or long > BUDGET_CHARS)
        if number < first or late or number > documents.MAX_PANELS:
            shown.late += 1
            fences[part.line] = _page("reports/_late.html", {"number": number, "linked": on_page and not apart})
        elif isinstance(part, Broken):
            fences[part.line] = _page("reports/_broken.html", {"sentences": part.sentences})
        else:
            fences[part.line] = _panel(part, number, reader, author, shown, apart=apart)
        long += len(fences[part.line])
    top = 2 if on_page else 3  # below the title of the page, or below a heading of the form
    shown.html = markdown.render(text, fences=fences, longest=documents.LONGEST_BYTES, apart=apart, top=top)
    return shown


def _panel(panel: Panel, number: int, reader: User, author: User | None, shown: Shown, *, apart: bool) -> SafeString:
    try:
        selection = panel_data.chosen(panel, reader, author)
        context = CONTEXTS[panel.kind](panel, reader, selection, f"panel-{number}")
    except DomainError as exc:
        return _page("reports/_broken.html", {"sentences": [error.message for error in exc.every]})
    shown.hidden += selection.hidden
    shown.runs |= {row["id"]: row["name"] for row in selection.table.runs}
    base_context = {"panel": panel, "found": selection, "ident": f"panel-{number}", "apart": apart}
    return _page(PAGES[panel.kind], base_context | context)


def _page(name: str, context: Mapping[str, Any]) -> SafeString:
    return SafeString(render_to_string(name, dict(context)))


def _runs(_panel: Panel, _reader: User, selection: Chosen, _ident: str) -> dict[str, Any]:
    columns = selection.table.columns
    rows = [
        {
            "run": run,
            "cells": [
                (panel_data.plain(column.values[index], column.kind), column.kind == "number") for column in columns
            ],
        }
        for index, run in enumerate(selection.table.runs)
    ]
    return {"heads": [(panel_data.heading(column), column.kind == "number") for column in columns], "rows": rows}


def _curves(panel: Panel, reader: User, selection: Chosen, ident: str) -> dict[str, Any]:
    labels = {"step": _("step"), "time": _("seconds since the first point"), "epoch": _("epoch")}
    axis = labels[panel.values["axis"]]
    charts = []
    for number, drawn in enumerate(panel_data.curves(panel, reader, selection), 1):
        svg = drawing.curves(
            drawn.x, [curve.line for curve in drawn.curves], ident=f"{ident}-{number}", title=drawn.word,
            description=_describe(drawn), axis=axis, log=panel.values["log"],
        )  # fmt: skip
        legend = [(drawing.swatch(index), curve) for index, curve in enumerate(drawn.curves)]
        query, live = panel_data.live(panel, selection, drawn)
        charts.append({"drawn": drawn, "svg": svg, "legend": legend, "query": query, "live": json.dumps(live)})
    return {"charts": charts, "grouped": panel.values["group_by"]}


def _describe(drawn: Drawn) -> str:
    """The curves in words, for who does not see them."""

    def one(curve: Curve) -> str:
        facts = {"name": curve.line.name, "last": f"{curve.last:.4g}", "low": f"{curve.lowest:.4g}"}
        return _("%(name)s: last %(last)s, from %(low)s to %(high)s") % (facts | {"high": f"{curve.highest:.4g}"})

    return "; ".join(one(curve) for curve in drawn.curves if curve.last is not None) or _("No points")


def _scatter(panel: Panel, _reader: User, selection: Chosen, ident: str) -> dict[str, Any]:
    dots = panel_data.dots(panel, selection)
    named = [Dot(x, y, shade, f"{run['name']}: {x:.4g}, {y:.4g}", dots.ramp) for x, y, shade, run in dots.points]
    title = _("%(y)s by %(x)s") % {"x": dots.axes[0], "y": dots.axes[1]}
    description = "; ".join(dot.name for dot in named[: panel_data.LISTED]) or _("No points")
    svg = drawing.dots(
        named, ident=ident, title=title, description=description, axes=dots.axes,
        log=(panel.values["log_x"], panel.values["log_y"]),
    )  # fmt: skip
    legend = [(drawing.swatch(shade - 1, dot=True, ramp=dots.ramp), word) for word, shade in dots.groups]
    return {"dots": dots, "svg": svg, "legend": legend, "heading": title}


def _figure(panel: Panel, _reader: User, selection: Chosen, _ident: str) -> dict[str, Any]:
    column = selection.column(panel.values["value"])
    value = column.values[0] if column.values else None
    run = selection.table.runs[0] if value is not None else None
    return {"value": panel_data.plain(value), "run": run, "label": panel_data.heading(column)}


PAGES = {
    panels.RUNS: "reports/_runs.html",
    panels.CURVES: "reports/_curves.html",
    panels.SCATTER: "reports/_scatter.html",
    panels.FIGURE: "reports/_figure.html",
}
CONTEXTS = {panels.RUNS: _runs, panels.CURVES: _curves, panels.SCATTER: _scatter, panels.FIGURE: _figure}
