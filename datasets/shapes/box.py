"""The axis-parallel box. Its ring is its four corners, clockwise from the top left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy

from aiplatform.lib.wording import message
from datasets.shapes import geometry
from datasets.shapes.geometry import Rings
from datasets.shapes.kind import CocoItem, Cut, Flaw, Reading, Reporter, ShapeKind, box_path, corners_of
from datasets.shapes.outlines import flaw_of_points, polygons_in, spanned

FOUR_CORNERS = message("shape.four_corners")


class BoxKind(ShapeKind):
    """A drawn rectangle, or an annotation that has only a `bbox`."""

    name: ClassVar[str] = "bbox"
    label = gettext_lazy("Box")
    tool: ClassVar[str] = "box"
    icon: ClassVar[str] = "box"
    key: ClassVar[str] = "R"
    hint = gettext_lazy("Box: drag, or click two corners")

    def flaw(self, rings: object, *, width: float, height: float, crossings: bool = True) -> Flaw | None:
        flaw = flaw_of_points(rings, width=width, height=height, least=3, few=FOUR_CORNERS, crossings=crossings)
        if flaw is not None:
            return flaw
        checked: Any = rings
        if len(checked) == 1 and geometry.is_box(self.cleaned(checked)[0]):
            return None
        return Flaw("not_a_box", FOUR_CORNERS, ring=None)

    def attributes(self, rings: Rings) -> dict[str, Any]:
        return {"shape": self.name}

    def claims(self, item: CocoItem) -> bool:
        named = item.attributes.get("shape") == self.name
        return not isinstance(item.segmentation, dict) and (named or not item.segmentation)

    def read(self, item: CocoItem, report: Reporter) -> Reading | None:
        rings = polygons_in(item, report)
        return None if rings is None else self.around(item, rings, report)

    def around(self, item: CocoItem, rings: list[list[float]], report: Reporter) -> Reading | None:
        """The annotation's `bbox`, or the box around its polygons where it has none."""
        bbox: Any = item.bbox or (spanned(rings) if rings else None)
        if not bbox or bbox[2] <= 0 or bbox[3] <= 0:
            report.drop("bbox", "degenerate_box", message("report.flat_box", image=item.image))
            return None
        reading = self.to_reading(*map(float, bbox), attributes=item.attributes)
        return replace(reading, area=float(item.area)) if item.area is not None and item.area > 0 else reading

    def to_reading(self, x: float, y: float, width: float, height: float, *, attributes: Mapping[str, Any]) -> Reading:
        """Return a rectangle with its corners as the polygon that every COCO reader understands."""
        corners = geometry.box_ring(x, y, width, height)
        stored = {"shape": self.name} | dict(attributes)
        return Reading(self.name, (x, y, width, height), [corners], width * height, stored)

    def cut(self, bbox: tuple[float, float, float, float], width: float, height: float) -> Cut:
        x, y, across, down = bbox
        right, bottom = min(x + across, float(width)), min(y + down, float(height))
        x, y = max(x, 0.0), max(y, 0.0)
        return Cut(
            (x, y, right - x, bottom - y),
            [[x, y, right, y, right, bottom, x, bottom]],
            (right - x) * (bottom - y),
            "clipped_box",
            message("report.box_cut"),
        )

    def drawn(self, shape: Mapping[str, Any]) -> list[list[float]]:
        return [corners_of(shape["bbox"])]

    def editable(self, shape: Mapping[str, Any]) -> tuple[str, list[list[float]]]:
        return self.name, [geometry.box_ring(*shape["bbox"])]

    def svg(self, points: list[float]) -> str:
        return box_path(points)


BOX = BoxKind()
