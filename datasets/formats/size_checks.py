"""Compare annotations with the real sizes of their images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiplatform.lib.wording import Message, message
from datasets import shapes
from datasets.formats import orientation
from datasets.formats.neutral import ImageItem, Shape
from datasets.formats.problems import Problems

ROUNDED_PX = 0.5  # parts of a side have six decimals at most: what sticks out by less is rounding


def fit_to_image(image: ImageItem, width: int, height: int, problems: Problems, *, exif: int = 1) -> None:
    """Compare an image's annotations with its real upright size, which turns relative numbers into pixels.

    Shapes that lie off the image are left out; those that stick out are cut at its edge where their kind can do
    that (boxes), else kept as they came. A size the annotation file states wrongly is reported. Where the stated size
    is that of the stored image and not of the upright one, the shapes are turned.

    Args:
        exif: orientation of the stored image, 1–8.
    """
    was_annotated = bool(image.shapes or image.stated)
    if exif != 1 and image.shapes:
        _turn_stored(image, width, height, exif, problems)
    if image.relative:
        for shape in image.shapes:
            _scale(shape, width, height)
        image.relative = False
    elif image.width and image.height and (image.width, image.height) != (width, height):
        wrong = _mask_of_other_size((image.height, image.width), width, height)
        if image.exact and image.shapes and wrong:
            problems.skip(image.path, "mask_size", wrong, count=len(image.shapes))
            image.shapes = []
        else:
            _report_size(image, width, height, problems)
    image.width, image.height = width, height
    fitting = []
    for shape in image.shapes:
        x, y, across, down = shape.bbox
        kind = shapes.get(shape.kind)
        if not kind.meets(shape.bbox, width, height):
            problems.skip(image.path, "outside_image", message("report.off_image"))
            continue
        size = shape.segmentation["size"] if isinstance(shape.segmentation, dict) else (height, width)
        if wrong := _mask_of_other_size(size, width, height):
            problems.skip(image.path, "mask_size", wrong)
            continue
        if x < 0 or y < 0 or x + across > width or y + down > height:
            cut = kind.cut(shape.bbox, width, height)
            if cut:
                problems.add(image.path, cut.code, cut.says)
                shape.bbox, shape.segmentation, shape.area = cut.bbox, cut.segmentation, cut.area
            else:
                problems.add(image.path, "beyond_edge", message("report.beyond_edge"))
        fitting.append(shape)
    if was_annotated and not fitting:
        image.annotated = False
    image.shapes = fitting


def _report_size(image: ImageItem, width: int, height: int, problems: Problems) -> None:
    sizes = {"stated_width": image.width, "stated_height": image.height, "width": width, "height": height}
    problems.add(image.path, "other_size", message("report.other_size", **sizes))


def _turn_stored(image: ImageItem, width: int, height: int, exif: int, problems: Problems) -> None:
    """Turn shapes that are given on the stored image; report where nothing proves which image they are given on."""
    stored = (height, width) if orientation.swaps_sides(exif) else (width, height)
    stated = (image.width, image.height)
    if stored == (width, height) or None in stated or image.relative:
        problems.add(image.path, "rotated", message("report.rotated"))
    elif stated == stored:
        for shape in image.shapes:
            orientation.turn(shape, exif, *stored)
        image.width, image.height = width, height
        problems.note(image.path, "turned", message("report.turned"))


def _mask_of_other_size(size: Sequence[int], width: int, height: int) -> Message | None:
    """What is wrong with a mask of `size` (rows, columns) that is not the size of its image; None where it is."""
    rows, columns = size
    if (rows, columns) == (height, width):
        return None
    code = "report.mask_swapped" if (columns, rows) == (height, width) else "report.mask_size"
    return message(code, rows=rows, columns=columns, height=height, width=width)


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
