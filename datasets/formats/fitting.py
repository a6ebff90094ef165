"""Compare annotations with the real sizes of their images."""

from __future__ import annotations

from typing import Any

from aiplatform.lib.wording import message
from datasets import shapes
from datasets.formats.neutral import ImageItem, Shape
from datasets.formats.problems import Problems

ROUNDED_PX = 0.5  # parts of a side have six decimals at most: what sticks out by less is rounding


def fit_to_image(image: ImageItem, width: int, height: int, problems: Problems) -> None:
    """Compare an image's annotations with its real upright size, which turns relative numbers into pixels.

    Shapes that lie off the image are left out; those that stick out are cut at its edge where their kind can do
    that (boxes), else kept as they came. A size the annotation file states wrongly is reported.
    """
    if image.relative:
        for shape in image.shapes:
            _scale(shape, width, height)
        image.relative = False
    elif image.width and image.height and (image.width, image.height) != (width, height):
        problems.add(
            image.path,
            "other_size",
            message(
                "report.other_size",
                stated_width=image.width,
                stated_height=image.height,
                width=width,
                height=height,
            ),
        )
    image.width, image.height = width, height
    kept = []
    for shape in image.shapes:
        x, y, across, down = shape.bbox
        kind = shapes.get(shape.kind)
        if not kind.meets(shape.bbox, width, height):
            problems.add(image.path, "outside_image", message("report.off_image"))
            continue
        if x < 0 or y < 0 or x + across > width or y + down > height:
            cut = kind.cut(shape.bbox, width, height)
            if cut:
                problems.add(image.path, cut.code, cut.says)
                shape.bbox, shape.segmentation, shape.area = cut.bbox, cut.segmentation, cut.area
            else:
                problems.add(image.path, "beyond_edge", message("report.beyond_edge"))
        kept.append(shape)
    image.shapes = kept


def _scale(shape: Shape, width: int, height: int) -> None:
    """Parts of width and height become pixels; what sticks out by rounding is moved to the edge."""
    rings: Any = shape.segmentation
    scaled = [
        [_near_edge(value * side, side) for value, side in zip(ring, _sides(ring, width, height), strict=True)]
        for ring in rings
    ]
    xs = [x for ring in scaled for x in ring[::2]]
    ys = [y for ring in scaled for y in ring[1::2]]
    shape.segmentation = scaled
    shape.bbox = (min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))
    shape.area *= width * height


def _sides(ring: list[float], width: int, height: int) -> list[int]:
    return [width, height] * (len(ring) // 2)


def _near_edge(value: float, side: int) -> float:
    if -ROUNDED_PX <= value < 0:
        return 0.0
    if side < value <= side + ROUNDED_PX:
        return float(side)
    return round(value, 4)
