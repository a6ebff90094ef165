"""Turn shapes of a stored image as its EXIF orientation turns the image. Pure.

Source: EXIF 2.32, tag 0x0112. Of orientations 5 to 8 width and height are swapped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from datasets.formats import tracing
from datasets.formats.neutral import Shape
from datasets.shapes.outlines import spanned
from datasets.shapes.rle import rle_runs

#: Orientation → where a point of the stored image of `width` × `height` px is on the upright one.
_POINTS: dict[int, Callable[[float, float, int, int], tuple[float, float]]] = {
    2: lambda x, y, width, height: (width - x, y),
    3: lambda x, y, width, height: (width - x, height - y),
    4: lambda x, y, width, height: (x, height - y),
    5: lambda x, y, width, height: (y, x),
    6: lambda x, y, width, height: (height - y, x),
    7: lambda x, y, width, height: (height - y, width - x),
    8: lambda x, y, width, height: (y, width - x),
}
_MASKS: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    2: np.fliplr,
    3: lambda pixels: np.rot90(pixels, 2),
    4: np.flipud,
    5: np.transpose,
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: np.rot90(np.transpose(pixels), 2),
    8: np.rot90,
}


def swaps_sides(orientation: int) -> bool:
    """Whether width and height of the stored image are height and width of the upright one."""
    return orientation >= 5


def turn(shape: Shape, orientation: int, width: int, height: int) -> None:
    """Turn a shape of the stored image, which has `width` × `height` px, to the upright one."""
    if orientation not in _POINTS:
        return
    point = _POINTS[orientation]

    def turned(ring: list[float]) -> list[float]:
        return [side for x, y in zip(ring[::2], ring[1::2], strict=True) for side in point(x, y, width, height)]

    x, y, across, down = shape.bbox
    shape.bbox = spanned([turned([x, y, x + across, y + down])])
    if isinstance(shape.segmentation, dict):
        shape.segmentation = _turned_mask(shape.segmentation, orientation)
    else:
        shape.segmentation = [turned(ring) for ring in shape.segmentation]
    points: Any = shape.extra.get("keypoints")
    if isinstance(points, list) and len(points) % 3 == 0:
        shape.extra["keypoints"] = [
            value
            for x, y, visibility in zip(points[::3], points[1::3], points[2::3], strict=True)
            for value in ((*point(x, y, width, height), visibility) if visibility else (x, y, visibility))
        ]


def _turned_mask(rle: dict[str, Any], orientation: int) -> dict[str, Any]:
    (height, width), runs = rle_runs(rle)
    pixels = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape((width, height)).T
    return tracing.runs(np.ascontiguousarray(_MASKS[orientation](pixels)))
