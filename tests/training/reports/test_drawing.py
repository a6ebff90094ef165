"""Drawings: axes with round numbers, odd values, and nothing a name can break out of."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tests.cases import case_table
from training.experiments.reports import scales, svg
from training.experiments.reports.svg import Dot, Line

NAN, INF = float("nan"), float("inf")


def curves(*values, log=False, bands=True):
    lines = [
        Line(f"run {n}", row, row - 1, row + 1) if bands else Line("run", row)
        for n, row in enumerate(map(np.array, values))
    ]
    x = np.arange(len(values[0]), dtype=float) if values else np.arange(0.0)
    text = svg.curves(x, lines, ident="a", title="Loss", description="said", axis="step", log=log)
    return text, ET.fromstring(text)


def numbers(text: str) -> list[float]:
    found = [
        part for place in re.findall(r' (?:d|x|y|cx|cy)="([^"]*)"', text) for part in re.findall(r"-?[\d.]+", place)
    ]
    return [float(one) for one in found]


@case_table("log", [False, True])
@case_table(
    "values",
    [
        [], [1.0], [NAN], [INF, -INF], [1.0, NAN, 3.0], [NAN, 2.0], [0.0, 0.0], [-1.0, -2.0], [1e308, -1e308],
        [5e-324, 1e-310], [1e15, 1e15 + 1], [1.0, INF, 2.0], [1e-9, 1e9],
    ],
    ids=str,
)  # fmt: skip
def test_odd_curves_are_drawn_inside_of_their_frame(values, log):
    text, root = curves(values, log=log)

    assert root.attrib["role"] == "img"
    assert [root.find("title").text, root.find("desc").text] == ["Loss", "said"]
    assert root.attrib["aria-labelledby"] == "a-t a-d"
    assert "nan" not in text.lower().replace("inance", "")
    assert "inf" not in text.lower()
    inside = [one for one in numbers(text) if not -10 <= one <= svg.WIDE + 10]
    assert inside == []


def test_curve_skips_empty_places_and_a_single_point_is_a_dot():
    _text, root = curves([1.0, NAN, 3.0], bands=False)
    single, dot = curves([NAN, 2.0], bands=False)

    (line,) = root.findall("path[@class='rc-line rc-1 rc-dash-0']")
    assert line.attrib["d"].count("L") == 1
    assert (dot.find("circle/title").text, "rc-line" in single) == ("run", False)


def test_lines_of_one_colour_have_other_dashes():
    _text, root = curves(*[[float(n), n + 1.0] for n in range(20)], bands=False)

    looks = [path.attrib["class"] for path in root.findall("path") if "rc-line" in path.attrib["class"]]
    assert len(set(looks)) == 20


def test_names_cannot_break_out_of_a_drawing():
    name = '"><script>alert(1)</script>'
    text = svg.curves(
        np.arange(2.0), [Line(name, np.arange(2.0))], ident="a", title=name, description=name, axis=name, log=False
    )
    dots = svg.dots(
        [Dot(1, 2, 1, name)], ident="a", title=name, description=name, axes=(name, name), log=(False, False)
    )

    assert "<script" not in text + dots
    assert ET.fromstring(text).find("title").text == name
    assert ET.fromstring(dots).find("desc").text == name


@pytest.mark.parametrize("log", [(False, False), (True, True)])
def test_odd_dots_are_left_out(log):
    found = [Dot(x, y, 1, "run") for x, y in itertools.product((NAN, INF, -1.0, 0.0, 1.0, 1e308), repeat=2)]

    text = svg.dots(found, ident="a", title="t", description="", axes=("x", "y"), log=log)

    shown = ET.fromstring(text).findall("path/title")
    assert len(shown) == (4 if log[0] else 16)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (0, 100_000, ["0", "20,000", "40,000", "60,000", "80,000", "100,000"]),
        (0.91, 0.94, ["0.91", "0.915", "0.92", "0.925", "0.93", "0.935", "0.94"]),
        (-2.2, 3, ["-2", "-1", "0", "1", "2", "3"]),
    ],
)
def test_ticks_are_round(low, high, ticks):
    assert [scales.written(one) for one in scales.Scale(low, high, 0, 100).ticks] == ticks


def test_ticks_by_magnitude():
    def said(low: float, high: float) -> list[str]:
        return [scales.written(one) for one in scales.Scale(low, high, 0, 100, log=True).ticks]

    assert said(1e-4, 1) == ["0.0001", "0.001", "0.01", "0.1", "1"]
    assert said(0.02, 0.6) == ["0.02", "0.05", "0.1", "0.2", "0.5"]
    assert len(said(1e-30, 1e30)) <= 8
