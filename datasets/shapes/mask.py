"""The run-length mask of COCO files. Read, kept and drawn as its box; people go on with it as a polygon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy

from aiplatform.lib.wording import Worded, message
from datasets.shapes import geometry
from datasets.shapes.kind import CocoItem, Reading, Reporter, ShapeKind, box_path, corners_of
from datasets.shapes.polygon import POLYGON
from datasets.shapes.rle import mask_extents, outlines, rle_runs


class MaskKind(ShapeKind):
    """Pixels as runs, plain or compressed; crowds are of this kind."""

    name: ClassVar[str] = "mask"
    label = gettext_lazy("Mask")
    drawable: ClassVar[bool] = False

    def claims(self, item: CocoItem) -> bool:
        return isinstance(item.segmentation, dict)

    def read(self, item: CocoItem, report: Reporter) -> Reading | None:
        try:
            size, runs = rle_runs(item.segmentation)
        except Worded as exc:
            report.refuse("segmentation", "bad_mask", exc.worded)
            return None
        pixels = sum(runs[1::2])
        if not pixels:
            report.drop("segmentation", "degenerate_mask", message("report.empty_mask"))
            return None
        x, y, width, height = (float(side) for side in item.bbox) if item.bbox else mask_extents(size, runs)
        area = float(item.area) if item.area is not None and item.area > 0 else float(pixels)
        return Reading(self.name, (x, y, width, height), dict(item.segmentation), area, dict(item.attributes))

    def drawn(self, shape: Mapping[str, Any]) -> list[list[float]]:
        return [corners_of(shape["bbox"])]

    def editable(self, shape: Mapping[str, Any]) -> tuple[str, list[list[float]]]:
        """Its outlines as a polygon; its box where it has more of them than a shape may have."""
        return POLYGON.name, outlines(*rle_runs(shape["segmentation"])) or [geometry.box_ring(*shape["bbox"])]

    def svg(self, points: list[float]) -> str:
        return box_path(points)


MASK = MaskKind()
