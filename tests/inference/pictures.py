"""Pictures as bytes."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

RGB = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "black": (0, 0, 0)}


def plain(colour: str = "red", size: tuple[int, int] = (32, 24), format: str = "PNG") -> bytes:
    """One colour all over."""
    return encoded(Image.new("RGB", size, RGB[colour]), format)


def with_boxes(boxes: dict[tuple[int, int, int, int], str], size: tuple[int, int] = (128, 128)) -> bytes:
    """Coloured rectangles (x1 y1 x2 y2 → colour) on black."""
    pixels = np.zeros((size[1], size[0], 3), np.uint8)
    for (x1, y1, x2, y2), colour in boxes.items():
        pixels[y1:y2, x1:x2] = RGB[colour]
    return encoded(Image.fromarray(pixels))


def encoded(image: Image.Image, format: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()
