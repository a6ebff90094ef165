"""Small charts as SVG, drawn by the server so that printed reports have them too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDE, HIGH, LEFT, BELOW, RIGHT, ABOVE = 440, 260, 58, 46, 20, 10
LABEL_DOWN, LABEL_LEFT = 8, 14  # of the words beside the axes, from the edge
MAX_WRITTEN = 1e6  # larger ones stand with their power of ten
LINE_KINDS = 8  # colours of lines, see tokens.css


@dataclass(frozen=True)
class Bar:
    """A bar from the ground on, all numbers as SVG wants them."""

    x: str
    y: str
    width: str
    height: str
    title: str


@dataclass(frozen=True)
class Line:
    """A line through points, and the number of its colour."""

    points: str
    colour: int
    title: str


@dataclass(frozen=True)
class Mark:
    """A dot with words."""

    x: str
    y: str
    title: str


@dataclass(frozen=True)
class Tick:
    """A number at an axis; `at` is the position of its grid line, if it has one."""

    x: str
    y: str
    text: str
    at: str = ""


@dataclass(frozen=True)
class Key:
    """A line of the legend: what a mark of the chart means."""

    text: str
    kind: str  # bar, dot or line
    colour: int = 1


@dataclass(frozen=True)
class Table:
    """The numbers of a chart, for those who would rather read them."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Chart:
    """What `inference/_chart.html` draws: `across_label` and `up_label` say what the axes count, and in what."""

    label: str
    across_label: str = ""
    up_label: str = ""
    bars: Sequence[Bar] = ()
    lines: Sequence[Line] = ()
    marks: Sequence[Mark] = ()
    across: Sequence[Tick] = ()
    up: Sequence[Tick] = ()
    keys: Sequence[Key] = ()
    table: Table | None = None
    width: int = WIDE
    height: int = HIGH

    @property
    def frame(self) -> dict[str, int]:
        """The positions of the axes and their labels."""
        return {
            "left": LEFT, "right": WIDE - RIGHT, "top": ABOVE, "bottom": HIGH - BELOW,
            "middle": (LEFT + WIDE - RIGHT) // 2, "half": (ABOVE + HIGH - BELOW) // 2,
            "label_down": HIGH - LABEL_DOWN, "label_left": LABEL_LEFT,
        }  # fmt: skip


class Frame:
    """From values to places: x from `low` to `high`, y from 0 to `top`."""

    def __init__(self, *, low: float = 0.0, high: float = 1.0, top: float = 1.0) -> None:
        self.low, self.high, self.top = low, high if high > low else low + 1, top if top > 0 else 1.0

    def x(self, value: float) -> float:
        """The place of a value across."""
        return LEFT + (value - self.low) / (self.high - self.low) * (WIDE - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """The place of a value upwards."""
        return HIGH - BELOW - min(max(value, 0.0), self.top) / self.top * (HIGH - BELOW - ABOVE)

    def bar(self, left: float, right: float, value: float, title: str) -> Bar:
        """A bar between two values across."""
        x, y = self.x(left), self.y(value)
        return Bar(_n(x + 0.5), _n(y), _n(max(0.5, self.x(right) - x - 1)), _n(self.y(0) - y), title)

    def line(self, pairs: Sequence[tuple[float, float]], title: str = "", colour: int = 1) -> Line:
        """A line through values."""
        points = " ".join(f"{_n(self.x(x))},{_n(self.y(y))}" for x, y in pairs)
        return Line(points, (colour - 1) % LINE_KINDS + 1, title)

    def mark(self, x: float, y: float, title: str) -> Mark:
        """A dot at values."""
        return Mark(_n(self.x(x)), _n(self.y(y)), title)

    def across(self, values: Sequence[tuple[float, str]]) -> list[Tick]:
        """Numbers below the chart."""
        return [Tick(_n(self.x(value)), _n(HIGH - BELOW + 16), text) for value, text in values]

    def up(self, values: Sequence[tuple[float, str]]) -> list[Tick]:
        """Numbers left of the chart."""
        return [Tick(_n(LEFT - 6), _n(self.y(value) + 4), text, _n(self.y(value))) for value, text in values]


def count_ticks(top: float) -> list[tuple[float, str]]:
    """Return about five round numbers from 0 to a maximum, for an axis."""
    top = top if top > 0 else 1.0
    power = 10.0 ** math.floor(math.log10(top / 4))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= top / 5)
    values = [at * step for at in range(int(top / step + 1e-9) + 1)]
    return [(value, f"{value:,.10g}" if top < MAX_WRITTEN else f"{value:.3g}") for value in values]


def _n(value: float) -> str:
    return f"{value:.1f}"


SHARES = [(0.0, "0"), (0.25, "0.25"), (0.5, "0.5"), (0.75, "0.75"), (1.0, "1")]
