"""Small drawn symbols on photograph-like grounds: what a fixed, stretched input of 320 pixels does badly on.

Grounds are soft landscapes of light with hard-edged things in them; pictures are upright and lying, 4:3 and 16:9, and
the symbols on them 20 to 44 pixels of about a thousand. Everything is drawn by a seeded generator.
"""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from aiplatform.cli.demo.digits import Drawing

CLASSES = ("circle", "cross", "triangle", "square", "star")
SIZES = ((1024, 768), (768, 1024), (1024, 576), (576, 1024))
SMALLEST, LARGEST = 20, 44  # side of a symbol in pixels


def draw(counts: dict[str, int], *, seed: int = 5, larger: int = 1) -> list[Drawing]:
    """Draw `counts[split]` pictures per split with two to eight symbols each.

    Args:
        larger: so many times the usual sides have the pictures; symbols stay as small as they are.
    """
    rng = np.random.default_rng(seed)
    made = []
    for split, count in counts.items():
        for number in range(count):
            image = _ground(rng, *(larger * side for side in SIZES[int(rng.integers(len(SIZES)))]))
            boxes = [_symbol(rng, image) for _symbol_number in range(int(rng.integers(2, 9)))]
            made.append(Drawing(f"{split}_{number:03d}.jpg", split, image, boxes))
    return made


def _ground(rng: np.random.Generator, width: int, height: int) -> Image.Image:
    """Light from coarse to fine, then things with edges, then the grain of a camera."""
    light = np.zeros((height, width, 3), np.float32)
    for cells, strength in ((3, 120.0), (9, 60.0), (40, 30.0)):
        coarse = rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        scaled = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        light += (np.asarray(scaled, np.float32) - 128) / 128 * strength
    image = Image.fromarray((128 + light).clip(0, 255).astype(np.uint8))
    pen = ImageDraw.Draw(image)
    for _thing in range(int(rng.integers(8, 20))):
        x, y = rng.uniform(0, width), rng.uniform(0, height)
        turn, far = rng.uniform(0, 2 * math.pi, 4), rng.uniform(30, 160, 4)
        corners = [(x + f * math.cos(t), y + f * math.sin(t)) for t, f in zip(sorted(turn), far, strict=True)]
        pen.polygon(corners, fill=tuple(int(c) for c in rng.integers(30, 226, 3)))
    image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.5, 1.5))))
    grain = rng.normal(0, 6, (height, width, 1))
    return Image.fromarray((np.asarray(image, np.float32) + grain).clip(0, 255).astype(np.uint8))


def _symbol(rng: np.random.Generator, image: Image.Image) -> tuple[str, float, float, float, float]:
    side = int(rng.integers(SMALLEST, LARGEST))
    x, y = int(rng.integers(0, image.width - side)), int(rng.integers(0, image.height - side))
    name = CLASSES[int(rng.integers(len(CLASSES)))]
    bright = rng.random() < 0.5
    colour = tuple(int(c) for c in (rng.integers(200, 256, 3) if bright else rng.integers(0, 56, 3)))
    pen, thick = ImageDraw.Draw(image), max(2, side // 9)
    right, below, middle = x + side - 1, y + side - 1, x + side / 2
    if name == "circle":
        pen.ellipse((x, y, right, below), outline=colour, width=thick)
    elif name == "square":
        pen.rectangle((x, y, right, below), outline=colour, width=thick)
    elif name == "cross":
        pen.line((x, y, right, below), fill=colour, width=thick)
        pen.line((x, below, right, y), fill=colour, width=thick)
    elif name == "triangle":
        pen.polygon([(middle, y), (right, below), (x, below)], outline=colour, width=thick)
    else:
        points = [(math.pi * (corner / 5 - 0.5), side / 2 * (1.0, 0.42)[corner % 2]) for corner in range(10)]
        pen.polygon([(middle + r * math.cos(a), y + side / 2 + r * math.sin(a)) for a, r in points], fill=colour)
    return name, float(x), float(y), float(side), float(side)
