"""A kind of shape nobody has: a place without size, so that what boxes and polygons take for granted is false."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiplatform.lib.wording import verbatim
from datasets.shapes import ShapeKind
from datasets.shapes.outlines import flaw_of_points

XY = verbatim("A point is x and y.")
SCRIPT = Path(__file__).with_name("point.js")  # what would be annotation/static/annotation/shapes/point.js


class Point(ShapeKind):
    """One place, or several that belong to one object."""

    name = "point"
    label = "Point"
    tool = "point"
    icon = "target"
    key = "O"
    hint = "Point: click it"
    covers_area = False

    def flaw(self, rings: object, *, width: float, height: float, crossings: bool = True) -> Any:
        return flaw_of_points(rings, width=width, height=height, least=1, few=XY, closed=False)

    def svg(self, points: list[float]) -> str:
        x, y = points
        return f"M{x - 2:g},{y:g}a2,2 0 1,0 4,0a2,2 0 1,0 -4,0"
