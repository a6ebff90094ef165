"""Find out whether annotations were made on copies of all images scaled by one factor, and scale them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from datasets.formats.neutral import ImageItem

SCALE, KEEP = "scale", "keep"  # what a user may choose for shapes of images whose sizes are stated differently


def common_factor(images: Iterable[tuple[ImageItem, int, int]]) -> Fraction | None:
    """By what all shapes are to be multiplied; None where the stated sizes are right or do not all agree exactly.

    Args:
        images: each with its real width and height in pixels.
    """
    factors = set()
    for image, width, height in images:
        if not image.shapes:
            continue
        outlines = not image.exact and all(isinstance(shape.segmentation, list) for shape in image.shapes)
        if image.relative or not (outlines and image.width and image.height):
            return None
        factors |= {Fraction(width, image.width), Fraction(height, image.height)}
        if len(factors) > 1:
            return None
    return next((factor for factor in factors if factor != 1), None)


def scale(image: ImageItem, factor: Fraction) -> None:
    """Multiply the shapes and the stated size of an image."""
    by = float(factor)
    for shape in image.shapes:
        x, y, across, down = shape.bbox
        shape.bbox = (x * by, y * by, across * by, down * by)
        rings: Any = shape.segmentation
        shape.segmentation = [[value * by for value in ring] for ring in rings]
        shape.area *= by * by
        points = shape.extra.get("keypoints")
        if isinstance(points, list) and len(points) % 3 == 0:
            shape.extra["keypoints"] = [value if at % 3 == 2 else value * by for at, value in enumerate(points)]
    image.width = int(factor * image.width) if image.width else None
    image.height = int(factor * image.height) if image.height else None
