"""Shapes from what other tools draw: turned rectangles, ellipses, pixels. Pure; classes come later."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from datasets.formats import tracing
from datasets.formats.neutral import Shape
from datasets.shapes import geometry
from datasets.shapes.mask import MASK
from datasets.shapes.outlines import spanned
from datasets.shapes.polygon import POLYGON

ELLIPSE_CORNERS = 64  # area 0.16 % below that of the ellipse
Point = tuple[float, float]


def polygon(ring: list[float]) -> Shape:
    """A polygon of one part from its x, y in turn."""
    return Shape(0, POLYGON.name, spanned([ring]), [ring], geometry.shoelace(ring))


def turned(points: Sequence[Point], centre: Point, degrees: float) -> list[float]:
    """Points turned clockwise about `centre` as x, y in turn, to four decimals."""
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    ring = []
    for x, y in points:
        across, down = x - centre[0], y - centre[1]
        ring += [
            round(centre[0] + across * cosine - down * sine, 4),
            round(centre[1] + across * sine + down * cosine, 4),
        ]
    return ring


def ellipse(centre: Point, across: float, down: float, degrees: float) -> Shape:
    """An ellipse of two half axes, turned clockwise, as a polygon of `ELLIPSE_CORNERS` corners."""
    steps = [2 * math.pi * step / ELLIPSE_CORNERS for step in range(ELLIPSE_CORNERS)]
    points = [(centre[0] + across * math.cos(step), centre[1] + down * math.sin(step)) for step in steps]
    return polygon(turned(points, centre, degrees))


def mask_shape(pixels: np.ndarray) -> Shape:
    """The set pixels (height × width, bool) of an image as run lengths; area 0 where there are none."""
    rows, columns = np.flatnonzero(pixels.any(axis=1)), np.flatnonzero(pixels.any(axis=0))
    if not len(rows):
        return Shape(0, MASK.name, (0.0, 0.0, 0.0, 0.0), tracing.runs(pixels), 0.0)
    left, top = float(columns[0]), float(rows[0])
    bounds = (left, top, float(columns[-1]) + 1 - left, float(rows[-1]) + 1 - top)
    return Shape(0, MASK.name, bounds, tracing.runs(pixels), float(pixels.sum()))
