"""The polygon, in one part or several. A ring per part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy

from aiplatform.lib.wording import message
from datasets.shapes import geometry
from datasets.shapes.box import BOX
from datasets.shapes.geometry import Rings
from datasets.shapes.kind import CocoItem, Flaw, Reading, Reporter, ShapeKind
from datasets.shapes.outlines import flaw_of_points, polygons_in, spanned

TOO_FEW_POINTS = message("shape.three_points")


class PolygonKind(ShapeKind):
    """An outline drawn corner by corner; also every COCO annotation with polygons that no other kind claims."""

    name: ClassVar[str] = "polygon"
    label = gettext_lazy("Polygon")
    tool: ClassVar[str] = "polygon"
    icon: ClassVar[str] = "polygon"
    key: ClassVar[str] = "P"
    hint = gettext_lazy("Polygon: click the corners")

    def flaw(self, rings: object, *, width: float, height: float, crossings: bool = True) -> Flaw | None:
        return flaw_of_points(rings, width=width, height=height, least=3, few=TOO_FEW_POINTS, crossings=crossings)

    def attributes(self, rings: Rings) -> dict[str, Any]:
        return {}

    def claims(self, item: CocoItem) -> bool:
        return bool(item.segmentation) and not isinstance(item.segmentation, dict)

    def read(self, item: CocoItem, report: Reporter) -> Reading | None:
        rings = polygons_in(item, report)
        if rings is None:
            return None
        if not rings:  # all parts were too short: what is left is the box the file states
            return BOX.around(item, rings, report)
        total = sum(map(geometry.shoelace, rings))
        if total <= 0:
            report.drop("segmentation", "degenerate_polygon", message("report.flat_polygon", image=item.image))
            return None
        stated = item.bbox if item.bbox and item.bbox[2] > 0 and item.bbox[3] > 0 else None
        x, y, width, height = map(float, stated) if stated else spanned(rings)
        area = float(item.area) if item.area is not None and item.area > 0 else total
        return Reading(self.name, (x, y, width, height), rings, area, dict(item.attributes))

    def drawn(self, shape: Mapping[str, Any]) -> list[list[float]]:
        rings: list[list[float]] = shape["segmentation"]
        return rings


POLYGON = PolygonKind()
