"""Drawings of reports as SVG: curves with bands, and dots. Pure: numbers in, SVG out.

Colours are classes with a number of the palette (`static/reports/charts.css`), so that one drawing is right in light,
in dark and on paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from training.experiments.reports import scales
from training.experiments.reports.scales import Numbers, Scale

WIDE, HIGH = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 72, 14, 10, 44
SHADES, DASHES, SHAPES = 8, 3, 4


@dataclass(frozen=True)
class Line:
    """A curve on the places of its drawing: NaN where it has no point. A band goes from `low` to `high`, if at all."""

    name: str
    mean: Numbers
    low: Numbers | None = None
    high: Numbers | None = None


@dataclass(frozen=True)
class Dot:
    """A point: its position, its color from 1 to 8, and the text of its tooltip."""

    x: float
    y: float
    shade: int
    name: str
    ramp: bool = False  # whether its shade is a step from little to much, 1 to 5


def curves(
    x: Numbers, lines: Sequence[Line], *, ident: str, title: str, description: str, axis: str, log: bool
) -> SafeString:
    """Draw the curves of one metric.

    Args:
        x: places on the axis, the same for all.
        ident: of the page, begins the ids of the drawing.
        about: one sentence for who does not see it.
        axis: the word below it.
    """
    across = scales.over([x[_shown(line.mean)] for line in lines], begin=LEFT, end=WIDE - RIGHT)
    spread = [own for line in lines for own in (line.mean, line.low, line.high) if own is not None]
    up = scales.over(spread, begin=HIGH - BOTTOM, end=TOP, log=log, room=0.04)
    places = across.at(x)
    drawn = [_line(places, line, up, at) for at, line in enumerate(lines)]
    return _picture(_axes(across, up, axis) + _joined(drawn), ident=ident, title=title, description=description)


def dots(
    points: Sequence[Dot], *, ident: str, title: str, description: str, axes: tuple[str, str], log: tuple[bool, bool]
) -> SafeString:
    """Draw points by two numbers; a point that an axis cannot show is left out."""
    x, y = (np.array([getattr(dot, name) for dot in points], float) for name in ("x", "y"))
    across = scales.over([x], begin=LEFT, end=WIDE - RIGHT, log=log[0], room=0.04)
    up = scales.over([y], begin=HIGH - BOTTOM, end=TOP, log=log[1], room=0.06)
    places = zip(points, across.at(x), up.at(y), strict=True)
    drawn = [_dot(dot, left, top) for dot, left, top in places if np.isfinite(left) and np.isfinite(top)]
    return _picture(_axes(across, up, *axes) + _joined(drawn), ident=ident, title=title, description=description)


def swatch(index: int, *, dot: bool = False, ramp: bool = False) -> SafeString:
    """Return the legend symbol of a line or a dot."""
    if dot:
        shape = _shape(8, 6, 0 if ramp else index)
        return format_html(
            '<svg class="rc-swatch" viewBox="0 0 16 12" aria-hidden="true">{}</svg>', _mark(shape, index, ramp)
        )
    return format_html(
        '<svg class="rc-swatch" viewBox="0 0 28 12" aria-hidden="true"><path class="rc-line {}" d="M0 6H28"/></svg>',
        _css_classes(index),
    )


def _shown(values: Numbers) -> Numbers:
    return np.isfinite(values)


def _css_classes(index: int) -> str:
    return f"rc-{index % SHADES + 1} rc-dash-{index // SHADES % DASHES}"


def _line(places: Numbers, line: Line, up: Scale, at: int) -> SafeString:
    middle = up.at(line.mean)
    there = np.isfinite(middle) & np.isfinite(places)
    if not there.any():
        return SafeString("")
    x, y = places[there], middle[there]
    band = SafeString("")
    if line.low is not None and line.high is not None and len(x) > 1:
        top, bottom = up.at(line.high)[there], up.at(line.low)[there]
        bottom = np.where(np.isfinite(bottom), bottom, up.begin)  # below what an axis by magnitude can show
        top = np.where(np.isfinite(top), top, y)
        if (np.abs(top - bottom) > 0.5).any():
            around = _path(np.concatenate([x, x[::-1]]), np.concatenate([top, bottom[::-1]]))
            band = format_html('<path class="rc-band rc-{}" d="{}Z"/>', at % SHADES + 1, around)
    if len(x) == 1:
        own = format_html(
            '<circle class="rc-dot rc-{}" cx="{}" cy="{}" r="3.5"><title>{}</title></circle>',
            at % SHADES + 1,
            _px(x[0]),
            _px(y[0]),
            line.name,
        )
    else:
        own = format_html(
            '<path class="rc-line {}" d="{}"><title>{}</title></path>', _css_classes(at), _path(x, y), line.name
        )
    return band + own


def _path(x: Numbers, y: Numbers) -> str:
    return "M" + "L".join(f"{left:.1f} {top:.1f}" for left, top in zip(x.tolist(), y.tolist(), strict=True))


def _px(value: float) -> str:
    return f"{value:.1f}"


def _dot(dot: Dot, left: float, top: float) -> SafeString:
    shape = _shape(float(left), float(top), 0 if dot.ramp else dot.shade - 1)
    return _mark(shape, dot.shade - 1, dot.ramp, dot.name)


def _shape(x: float, y: float, index: int) -> str:
    """Return the outline of a mark: a circle, a square, a triangle or a diamond, so that not only colors differ."""
    outlines = (
        f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
        f"M{x - 3.5:.1f} {y - 3.5:.1f}h7v7h-7Z",
        f"M{x:.1f} {y - 4.5:.1f}l4.5 8h-9Z",
        f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5Z",
    )
    return outlines[index % SHAPES]


def _mark(shape: str, index: int, ramp: bool, name: str = "") -> SafeString:
    css_class = f"rc-ramp-{index + 1}" if ramp else f"rc-{index % SHADES + 1}"
    return format_html(
        '<path class="rc-dot {}" d="{}">{}</path>',
        css_class,
        shape,
        format_html("<title>{}</title>", name) if name else "",
    )


def _axes(across: Scale, up: Scale, below: str, beside: str = "") -> SafeString:
    """Lines of the grid with their numbers, and what the axes say."""
    rows = zip(up.ticks, up.at(np.array(up.ticks, float)).tolist(), strict=True)
    columns = zip(across.ticks, across.at(np.array(across.ticks, float)).tolist(), strict=True)
    grid = [
        format_html(
            '<path class="rc-grid" d="M{} {}H{}"/><text x="{}" y="{}" text-anchor="end">{}</text>',
            LEFT, _px(top), WIDE - RIGHT, LEFT - 8, _px(top + 4), scales.written(tick),
        )
        for tick, top in rows
    ]  # fmt: skip
    grid += [
        format_html(
            '<text x="{}" y="{}" text-anchor="middle">{}</text>',
            _px(left),
            HIGH - BOTTOM + 16,
            scales.written(tick),
        )
        for tick, left in columns
    ]
    grid.append(format_html('<path class="rc-axis" d="M{} {}H{}"/>', LEFT, HIGH - BOTTOM, WIDE - RIGHT))
    grid.append(
        format_html('<text class="rc-word" x="{}" y="{}" text-anchor="end">{}</text>', WIDE - RIGHT, HIGH - 6, below)
    )
    if beside:
        grid.append(format_html('<text class="rc-word" x="{}" y="{}">{}</text>', LEFT, HIGH - 6, f"↑ {beside}"))
    return _joined(grid)


def _joined(parts: Iterable[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in parts))


def _picture(inside: SafeString, *, ident: str, title: str, description: str) -> SafeString:
    head = mark_safe(f'<svg class="rc" viewBox="0 0 {WIDE} {HIGH}" role="img"')  # noqa: S308 - numbers of this module
    return format_html(
        '{} aria-labelledby="{}-t {}-d"><title id="{}-t">{}</title><desc id="{}-d">{}</desc>{}</svg>',
        head, ident, ident, ident, title, ident, description, inside,
    )  # fmt: skip
