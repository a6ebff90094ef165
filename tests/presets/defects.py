"""Drawn surfaces, and on some of them a defect: a scratch, a blob, a missing part. For finding anomalies."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

CLASSES = ("good", "scratch", "blob", "missing")
SIZE = 160


@dataclass(frozen=True)
class Drawn:
    """One image; `box` is where its defect is, x0 y0 x1 y1."""

    name: str
    split: str
    kind: str
    jpeg: bytes
    box: tuple[float, float, float, float] | None


def draw(*, train: int = 60, test: int = 60, seed: int = 0) -> list[Drawn]:
    """Good images to learn from, and as many good ones as of each defect together to be judged."""
    rng = np.random.default_rng(seed)
    kinds = ["good"] * train + [CLASSES[place % 2 and 1 + place // 2 % 3] for place in range(test)]
    made = []
    for number, kind in enumerate(kinds):
        split = "train" if number < train else "test"
        image, box = _surface(rng), None
        if kind != "good":
            box = {"scratch": _scratch, "blob": _blob, "missing": _missing}[kind](rng, image)
        pixels = np.asarray(image, np.float32) + rng.normal(0, 4, (SIZE, SIZE, 1))
        out = io.BytesIO()
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=92)
        made.append(Drawn(f"{split}/{kind}/{number:03d}.jpg", split, kind, out.getvalue(), box))
    return made


def _surface(rng: np.random.Generator) -> Image.Image:
    """Cloth: threads both ways under changing light, a row of dark knots across it, a little shifted each time."""
    rows, columns = np.mgrid[:SIZE, :SIZE].astype(np.float32)
    phase = rng.uniform(0, 2 * math.pi, 2)
    threads = 22 * np.sin(columns * 2 * math.pi / 8 + phase[0]) + 22 * np.sin(rows * 2 * math.pi / 8 + phase[1])
    coarse = Image.fromarray(rng.integers(96, 160, (4, 4), dtype=np.uint8)).resize(
        (SIZE, SIZE), Image.Resampling.BICUBIC
    )
    light = 0.5 * (np.asarray(coarse, np.float32) - 128)
    shade = (140 + threads + light)[..., None] * np.array([1.0, 0.92, 0.8], np.float32)
    image = Image.fromarray(shade.clip(0, 255).astype(np.uint8))
    pen, (dx, dy) = ImageDraw.Draw(image), rng.uniform(-6, 6, 2)
    for y in range(20, SIZE, 40):
        for x in range(20, SIZE, 40):
            pen.ellipse((x + dx - 6, y + dy - 6, x + dx + 6, y + dy + 6), fill=(60, 52, 48))
    image.info["shift"] = (float(dx), float(dy))
    return image


def _scratch(rng: np.random.Generator, image: Image.Image) -> tuple[float, float, float, float]:
    x, y = rng.uniform(30, SIZE - 30, 2)
    turn, far = rng.uniform(0, math.pi), rng.uniform(14, 30)
    ends = [(x + side * far * math.cos(turn), y + side * far * math.sin(turn)) for side in (-1, 1)]
    light = int(rng.integers(205, 240))
    ImageDraw.Draw(image).line(ends, fill=(light, light, light - 10), width=int(rng.integers(2, 4)))
    xs, ys = zip(*ends, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _blob(rng: np.random.Generator, image: Image.Image) -> tuple[float, float, float, float]:
    x, y = rng.uniform(25, SIZE - 25, 2)
    side = float(rng.uniform(7, 14))
    stain = Image.new("L", image.size)
    ImageDraw.Draw(stain).ellipse((x - side, y - 0.7 * side, x + side, y + 0.7 * side), fill=200)
    colour = tuple(int(c) for c in rng.integers(40, 90, 3))
    image.paste(Image.new("RGB", image.size, colour), mask=stain.filter(ImageFilter.GaussianBlur(2)))
    return x - side, y - side, x + side, y + side


def _missing(rng: np.random.Generator, image: Image.Image) -> tuple[float, float, float, float]:
    """One knot is not there: cloth from beside it lies in its place."""
    dx, dy = image.info["shift"]
    column, row = rng.integers(0, 4, 2)
    x, y = round(20 + 40 * column + dx), round(20 + 40 * row + dy)
    beside = image.crop((x + 12, y - 8, x + 28, y + 8)) if column < 3 else image.crop((x - 28, y - 8, x - 12, y + 8))
    image.paste(beside, (x - 8, y - 8))
    return x - 8, y - 8, x + 8, y + 8
