"""Filled shapes with their outlines, on soft grounds: discs, squares, triangles and stars, some one upon another."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

CLASSES = ("disc", "square", "triangle", "star")
SIZE = (320, 240)
ROUND = 40  # corners of a disc


@dataclass(frozen=True)
class Picture:
    name: str
    split: str
    image: Image.Image
    outlines: list[tuple[str, list[float]]]  # class and ring, those below first


def draw(
    counts: dict[str, int],
    *,
    seed: int = 7,
    size: tuple[int, int] = SIZE,
    sides: tuple[float, float] = (0.12, 0.4),
    shapes: tuple[int, int] = (2, 5),
) -> list[Picture]:
    """Draw `counts[split]` pictures per split.

    Args:
        sides: of the smallest and the largest shape, as shares of the picture's shorter side.
        shapes: fewest and most on a picture.
    """
    rng = np.random.default_rng(seed)
    return [
        _picture(rng, f"{split}_{number:03d}.png", split, size, sides, shapes)
        for split, count in counts.items()
        for number in range(count)
    ]


def _picture(
    rng: np.random.Generator,
    name: str,
    split: str,
    size: tuple[int, int],
    sides: tuple[float, float],
    shapes: tuple[int, int],
) -> Picture:
    image = _ground(rng, *size)
    pen = ImageDraw.Draw(image)
    outlines = []
    for _shape in range(int(rng.integers(shapes[0], shapes[1] + 1))):
        side = float(rng.uniform(*sides)) * min(size)
        kind = CLASSES[int(rng.integers(len(CLASSES)))]
        x, y = float(rng.uniform(side / 2, size[0] - side / 2)), float(rng.uniform(side / 2, size[1] - side / 2))
        outlines.append((kind, _ring(kind, x, y, side / 2, float(rng.uniform(0, 2 * math.pi)))))
    outlines.sort(key=lambda one: -_area_of_box(one[1]))  # larger boxes below smaller ones, as masks are drawn
    for _kind, ring in outlines:
        pen.polygon(ring, fill=tuple(int(c) for c in rng.integers(0, 256, 3)))
    grain = rng.normal(0, 8, (size[1], size[0], 1))
    pixels = np.asarray(image.filter(ImageFilter.GaussianBlur(0.6)), np.float32) + grain
    return Picture(name, split, Image.fromarray(pixels.clip(0, 255).astype(np.uint8)), outlines)


def _ground(rng: np.random.Generator, width: int, height: int) -> Image.Image:
    light = np.zeros((height, width, 3), np.float32)
    for cells, strength in ((3, 60.0), (9, 25.0)):
        coarse = Image.fromarray(rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        light += (
            (np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.float32) - 128) / 128 * strength
        )
    return Image.fromarray((128 + light).clip(0, 255).astype(np.uint8))


def _ring(kind: str, x: float, y: float, radius: float, turn: float) -> list[float]:
    corners = {"disc": ROUND, "square": 4, "triangle": 3, "star": 10}[kind]
    points = []
    for corner in range(corners):
        angle = turn + 2 * math.pi * corner / corners
        far = radius * (0.45 if kind == "star" and corner % 2 else 1.0)
        points += [x + far * math.cos(angle), y + far * math.sin(angle)]
    return points


def _area_of_box(ring: list[float]) -> float:
    """Of the box around a ring, which is how versions.write says the area of a shape."""
    return (max(ring[::2]) - min(ring[::2])) * (max(ring[1::2]) - min(ring[1::2]))
