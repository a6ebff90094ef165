"""What kinds made of points share: checking them, and reading polygons from COCO."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from aiplatform.lib.wording import Message, message
from datasets.shapes import geometry
from datasets.shapes.kind import CocoItem, Flaw, Reporter

MAX_POINTS = 10_000
MAX_RINGS = 1_000


def flaw_of_points(
    rings: object,
    *,
    width: float,
    height: float,
    least: int,
    few: Message,
    closed: bool = True,
    crossings: bool = True,
    slack: float = 0.01,
) -> Flaw | None:
    """What is wrong with lists of points in an image of `width` × `height` pixels, or None.

    Trusts nothing. Checked in order of cost: structure and counts before numbers, numbers before geometry.

    Args:
        least: points a part needs; `few` says so.
        closed: each part is an outline, which covers something and does not cross itself.
        crossings: False skips the dearest check, for shapes that passed it when they were saved.
        slack: pixels a point may lie outside, for what rounding does to points on the border.
    """
    if not isinstance(rings, list) or not rings:
        return Flaw("no_points", message("shape.no_points"))
    if len(rings) > MAX_RINGS:
        return Flaw("too_many_parts", message("shape.most_parts"))
    if sum(len(ring) if isinstance(ring, list) else 1 for ring in rings) > 2 * MAX_POINTS:
        return Flaw("too_many_points", message("shape.most_points"))
    for index, ring in enumerate(rings):
        flaw = _flaw_of_numbers(ring, index, least, few) or _flaw_of_place(ring, index, width, height, slack)
        if flaw is None and closed:
            flaw = _flaw_of_outline(ring, index, crossings)
        if flaw is not None:
            return flaw
    return None


def _flaw_of_numbers(ring: object, index: int, least: int, few: Message) -> Flaw | None:
    if not isinstance(ring, list) or len(ring) % 2:
        return Flaw("not_pairs", message("shape.pairs"), index)
    if len(ring) < 2 * least:
        return Flaw("too_few_points", few, index)
    if not set(map(type, ring)) <= {int, float}:
        return Flaw("not_numbers", message("shape.numbers"), index, _first_odd(ring))
    if not all(map(math.isfinite, ring)):
        return Flaw("not_finite", message("shape.finite_numbers"), index, _first_odd(ring))
    return None


def _first_odd(ring: list[Any]) -> int:
    return next(n for n, value in enumerate(ring) if type(value) not in (int, float) or not math.isfinite(value))


def _flaw_of_place(ring: Any, index: int, width: float, height: float, slack: float) -> Flaw | None:
    xs, ys = ring[0::2], ring[1::2]
    if min(xs) < -slack or min(ys) < -slack or max(xs) > width + slack or max(ys) > height + slack:
        return Flaw("outside", message("shape.outside", width=f"{width:g}", height=f"{height:g}"), index)
    return None


def _flaw_of_outline(ring: Any, index: int, crossings: bool) -> Flaw | None:
    flat = abs(geometry.signed_area(ring)) <= geometry.MIN_AREA
    if (flat or crossings) and geometry.first_crossing(ring) is not None:
        return Flaw("crossing", message("shape.crossing"), index)
    return Flaw("no_area", message("shape.no_area"), index) if flat else None


def polygons_in(item: CocoItem, report: Reporter) -> list[list[float]] | None:
    """The polygons of a COCO annotation with at least three points; None when the annotation was refused."""
    parts = item.segmentation
    if parts is None:
        return []
    if not isinstance(parts, list):
        report.refuse("segmentation", "bad_polygon", message("report.polygon_list"))
        return None
    rings = []
    for number, ring in enumerate(parts):
        here = f"segmentation[{number}]"
        if not isinstance(ring, list) or len(ring) % 2 or not all(map(is_number, ring)):
            report.refuse(here, "bad_polygon", message("report.polygon_pairs"))
            return None
        if len(ring) > 2 * MAX_POINTS:
            report.refuse(here, "bad_polygon", message("report.polygon_points", most=MAX_POINTS))
            return None
        if len(ring) < 6:
            report.drop(here, "short_polygon", message("report.short_polygon", image=item.image))
            continue
        rings.append([float(value) for value in ring])
    return rings


def spanned(rings: Iterable[list[float]]) -> tuple[float, float, float, float]:
    """x, y, width, height around the points of all rings."""
    xs = [x for ring in rings for x in ring[::2]]
    ys = [y for ring in rings for y in ring[1::2]]
    return min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)


def is_number(value: Any) -> bool:
    """Whether a value of a JSON file is a number a coordinate can be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and abs(value) < 1e9
