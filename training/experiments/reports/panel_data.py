"""What the panels of a report show whoever reads it: runs by the services of the run table and the comparison, asked
for with the reader's own rights each time. Whatever the author saw beyond that is counted, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.times import format_duration as span_words
from training.catalog import metric_labels
from training.experiments import comparison, figure_sql, table
from training.experiments.comparison import Figure
from training.experiments.grid import Line as GridLine
from training.experiments.models import Run
from training.experiments.reports import panels
from training.experiments.reports.panels import Panel
from training.experiments.reports.scales import Numbers
from training.experiments.reports.svg import Line
from training.experiments.table import Column, Table
from workers.core.states import JobState

STRETCHES = 320  # of a curve, each with its lowest, mean and highest value
LISTED = 20  # runs that a drawing of dots names below it


@dataclass(frozen=True)
class Chosen:
    """Runs of a panel.

    Attributes:
        table: those that are shown, with the columns that were asked for.
        hidden: how many the author meant that this reader may not see.
    """

    table: Table
    hidden: int

    @property
    def left_out(self) -> int:
        """How many the reader may see, but the panel has no room for."""
        return self.table.total - len(self.table.runs)

    @property
    def numbers(self) -> list[int]:
        return [row["id"] for row in self.table.runs]

    def column(self, name: str) -> Column:
        return next(column for column in self.table.columns if column.name == name)


@dataclass(frozen=True)
class Curve:
    """A line of a chart with its statistics."""

    line: Line
    run: int | None  # None of a group
    members: int
    points: int
    last: float | None
    lowest: float | None
    highest: float | None


@dataclass(frozen=True)
class Drawn:
    """The curves of one key."""

    key: str
    word: str
    x: Numbers
    curves: list[Curve]
    above_zero_only: int = 0  # points that a logarithm cannot show


@dataclass(frozen=True)
class Dots:
    """Runs by two of their numbers, and by a third number or a text."""

    axes: tuple[str, str]
    points: list[tuple[float, float, Any, dict[str, Any]]]
    missing: int  # runs without one of both numbers
    groups: list[tuple[str, int]] = field(default_factory=list)  # what a colour means, from 1
    colour: str = ""
    ramp: bool = False


def chosen(panel: Panel, reader: User, author: User | None) -> Chosen:
    """Return the runs of a panel in the order that it requests: runs selected by number as they are listed."""
    columns = panel.columns or (["state"] if panel.kind != panels.RUNS else [])
    limit = panel.values.get("limit") or 1
    if panel.runs:
        limit = max(limit, len(panel.runs))
    run_table = table.table(
        reader, text=panel.filter, archived=bool(panel.runs), columns=columns, sort=_order(panel), limit=limit
    )
    if panel.runs and not panel.values["sort"] and panel.kind != panels.FIGURE:
        run_table = _as_named(run_table, panel.runs)
    return Chosen(run_table, _hidden(panel, run_table, reader, author))


def _order(panel: Panel) -> str:
    if panel.values["sort"] or panel.kind != panels.FIGURE:
        return panel.values["sort"]
    value: str = panel.values["value"]
    kind, _bracket, key = value.partition("(")
    up = kind == "min" or (kind != "max" and figure_sql.less_is_better(key.removesuffix(")")))
    return value if up else f"-{value}"


def _as_named(run_table: Table, numbers: Sequence[int]) -> Table:
    positions = {row["id"]: index for index, row in enumerate(run_table.runs)}
    order = [positions[number] for number in numbers if number in positions]
    columns = [
        Column(column.name, column.label, column.kind, [column.values[index] for index in order])
        for column in run_table.columns
    ]
    return Table(run_table.total, [run_table.runs[index] for index in order], columns)


def _hidden(panel: Panel, run_table: Table, reader: User, author: User | None) -> int:
    if panel.runs:
        return len(panel.runs) - run_table.total
    if author is None or author.pk == reader.pk or reader.sees_everything:
        return 0
    meant = table.rows(author, text=panel.filter)
    if author.sees_everything:  # else a filter that others wrote would count everybody's runs once an operator saves
        meant = meant.filter(owner=author)
    return meant.exclude(pk__in=Run.objects.visible_to(reader).values("pk")).count()


def curves(panel: Panel, reader: User, selection: Chosen) -> list[Drawn]:
    """Return the curves of each key of a panel."""
    if not selection.numbers:
        return []
    runs = comparison.chosen(reader, selection.numbers)
    reached = comparison.figures(runs)
    by = panel.values["group_by"]
    groups = _alike(selection.column(by).values) if by else []
    drawn = []
    for key in panel.values["keys"]:
        grid = comparison.curves(runs, key, axis=panel.values["axis"], width=STRETCHES)
        if groups:
            rows = [_of_group(word, [grid.lines[index] for index in members]) for word, members in groups]
        else:
            own = [figures.get(key) for figures in reached]
            rows = [_of_run(*entry) for entry in zip(runs, grid.lines, own, strict=True)]
        rows = [_smooth(row, panel.values["smoothing"]) for row in rows if row.points]
        below = sum(int((row.line.mean <= 0).sum()) for row in rows) if panel.values["log"] else 0
        drawn.append(Drawn(key, metric_labels.word(key), grid.x, rows, below))
    return drawn


def live(panel: Panel, selection: Chosen, drawn: Drawn) -> tuple[str, dict[str, Any]]:
    """Return the query for the points of a key, and how the page draws them: the runs of each line, by their positions.

    The page requests the points with the rights of the reader; names are those of the legend.
    """
    by = panel.values["group_by"]
    positions = {number: index for index, number in enumerate(selection.numbers)}
    groups = dict(_alike(selection.column(by).values)) if by else {}
    lines = [groups[curve.line.name] if by else [positions[curve.run or 0]] for curve in drawn.curves]
    axis = panel.values["axis"]
    query = urlencode(
        {"run": selection.numbers, "key": drawn.key, "axis": axis, "width": STRETCHES}, doseq=True, quote_via=quote
    )
    look = {"axis": axis, **{name: panel.values[name] for name in ("log", "smoothing")}}
    return query, {"lines": lines, "grouped": bool(by), "less": figure_sql.less_is_better(drawn.key), **look}


def _alike(values: Sequence[Any]) -> list[tuple[str, list[int]]]:
    """Return the indices of equal values, by the label of the value."""
    groups: dict[str, list[int]] = {}
    for index, value in enumerate(values):
        groups.setdefault(plain(value), []).append(index)
    return sorted(groups.items(), key=lambda group: _sort_key(group[0]))


def _sort_key(word: str) -> tuple[bool, float, str]:
    """Return the sort key of a label: numbers by size, then texts."""
    try:
        return False, float(word), word
    except ValueError:
        return True, 0.0, word


def _of_run(run: Run, line: GridLine, figure: Figure | None) -> Curve:
    if figure is None or not np.isfinite(line.mean).any():
        return Curve(Line(str(run), line.mean), run.pk, 1, 0, None, None, None)
    own = Line(str(run), line.mean, line.low, line.high)
    return Curve(own, run.pk, 1, line.points, figure.last, figure.lowest, figure.highest)


def _of_group(word: str, lines: Sequence[GridLine]) -> Curve:
    """The mean of all runs that have a point at a place, and one standard deviation (of a sample) around it."""
    values = np.array([line.mean for line in lines])
    there = np.isfinite(values)
    count = there.sum(axis=0)
    clean = np.where(there, values, 0.0)
    some = count > 0
    mean = np.full(values.shape[1], np.nan)
    with np.errstate(over="ignore", invalid="ignore"):  # what is beyond all numbers has no place in the drawing
        mean[some] = clean.sum(axis=0)[some] / count[some]
        residuals = np.where(there, values - np.where(some, mean, 0.0), 0.0)
        deviation = np.sqrt((residuals**2).sum(axis=0) / np.maximum(count - 1, 1))
    points = sum(line.points for line in lines)
    members = sum(bool(line.points) for line in lines)
    if not some.any():
        return Curve(Line(word, mean), None, members, 0, None, None, None)
    low, high = float(np.min(mean[some])), float(np.max(mean[some]))
    with np.errstate(invalid="ignore"):
        own = Line(word, mean, mean - deviation, mean + deviation)
    return Curve(own, None, members, points, float(mean[some][-1]), low, high)


def _smooth(curve: Curve, weight: float) -> Curve:
    """A smoothed curve has no band of its own stretches; that of a group is smoothed as its mean is."""
    own = curve.line
    if not weight:
        return curve
    if curve.run is None and own.low is not None and own.high is not None:
        low, high = _exponential(own.low, weight), _exponential(own.high, weight)
        return replace(curve, line=Line(own.name, _exponential(own.mean, weight), low, high))
    return replace(curve, line=Line(own.name, _exponential(own.mean, weight)))


def _exponential(values: Numbers, weight: float) -> Numbers:
    """An exponential mean, corrected for its start, as the comparison draws it (workers/static/workers/curves.js)."""
    mean, count, smoothed = 0.0, 0, values.copy()
    for index in np.flatnonzero(np.isfinite(values)).tolist():
        mean, count = mean * weight + float(values[index]) * (1 - weight), count + 1
        smoothed[index] = mean / (1 - weight**count)
    return smoothed


def dots(panel: Panel, selection: Chosen) -> Dots:
    """Return runs as points of a chart."""
    x, y = selection.column(panel.values["x"]), selection.column(panel.values["y"])
    by = selection.column(panel.values["colour"]) if panel.values["colour"] else None
    colours = by.values if by else [None] * len(x.values)
    rows = list(zip(x.values, y.values, colours, selection.table.runs, strict=True))
    points = [
        (float(row[0]), float(row[1]), row[2], row[3]) for row in rows if _is_number(row[0]) and _is_number(row[1])
    ]
    axes = (heading(x), heading(y))
    missing = len(rows) - len(points)
    if by is None:
        return Dots(axes, [(left, up, 1, run) for left, up, _colour, run in points], missing)
    numbers = [float(colour) for _x, _y, colour, _run in points if _is_number(colour)]
    if numbers and len(set(numbers)) > 5:
        edges = np.quantile(numbers, [0.2, 0.4, 0.6, 0.8])
        steps = [
            1 + int(np.searchsorted(edges, float(value), "right")) if _is_number(value) else 1
            for _x, _y, value, _run in points
        ]
        ends = [min(numbers), *edges.tolist(), max(numbers)]
        groups = [(f"{ends[step]:.4g} – {ends[step + 1]:.4g}", step + 1) for step in range(5)]
        own = [(left, up, step, run) for (left, up, _one, run), step in zip(points, steps, strict=True)]
        return Dots(axes, own, missing, groups, heading(by), ramp=True)
    kinds = sorted({plain(colour) for _x, _y, colour, _run in points}, key=_sort_key)
    shades = {kind: min(index, 7) + 1 for index, kind in enumerate(kinds)}
    own = [(left, up, shades[plain(colour)], run) for left, up, colour, run in points]
    groups = [(kind, shades[kind]) for kind in kinds[:7]]
    if len(kinds) > 7:
        groups.append((kinds[7] if len(kinds) == 8 else _("others"), 8))
    return Dots(axes, own, missing, groups, heading(by))


def heading(column: Column) -> str:
    """Return the label of a column; of a metric with which of its values it holds, if that is not the best one."""
    kind, bracket, _key = column.name.partition("(")
    labels = {"last": _("latest"), "min": _("minimum"), "max": _("maximum")}
    return f"{column.label} ({labels[kind]})" if bracket and kind in labels else column.label


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def plain(value: Any, kind: str = "") -> str:
    """A value of a column in words."""
    if value is None or value in ("", []):
        return "–"
    if kind == "state":
        return str(JobState(value).label) if value in JobState.values else str(value)
    if kind == "time":
        return localtime(datetime.fromisoformat(value)).strftime("%Y-%m-%d %H:%M")
    if kind == "duration":
        return span_words(float(value))
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
