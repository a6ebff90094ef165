"""Drawn figures with known points: people, fish and clocks on soft grounds, some of them partly hidden.

A person faces the reader and stands nearly upright, so that its left is the reader's right; fish and clocks lie any
way. A clock has no left and right: its mirror image shows another time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from tests.presets.outlines import _ground

SIZE = (320, 240)
PERSON = (
    *("head", "neck", "left_elbow", "right_elbow", "left_hand", "right_hand", "hip"),
    *("left_knee", "right_knee", "left_foot", "right_foot"),
)
LIMBS = ((1, 2), (2, 3), (2, 4), (3, 5), (4, 6), (2, 7), (7, 8), (7, 9), (8, 10), (9, 11))
SKELETONS: dict[str, tuple[tuple[str, ...], tuple[tuple[int, int], ...]]] = {
    "person": (PERSON, LIMBS),
    "fish": (("snout", "left_fin", "right_fin", "tail"), ((1, 2), (1, 3), (1, 4))),
    "clock": (("centre", "hour", "minute"), ((1, 2), (1, 3))),
}
Point = tuple[float, float]


@dataclass(frozen=True)
class Figure:
    kind: str
    points: list[tuple[float, float, int]]  # COCO's: 0 outside the picture, 1 hidden, 2 seen
    box: tuple[float, float, float, float]  # x, y, width, height of what is in the picture


@dataclass(frozen=True)
class Picture:
    name: str
    split: str
    image: Image.Image
    figures: list[Figure]


def draw(counts: dict[str, int], *, seed: int = 5, size: tuple[int, int] = SIZE, most: int = 2) -> list[Picture]:
    """Draw `counts[split]` pictures per split with one to `most` figures each."""
    rng = np.random.default_rng(seed)
    return [
        _picture(rng, f"{split}_{number:03d}.png", split, size, most)
        for split, count in counts.items()
        for number in range(count)
    ]


def _picture(rng: np.random.Generator, name: str, split: str, size: tuple[int, int], most: int) -> Picture:
    image = _ground(rng, *size)
    pen = ImageDraw.Draw(image)
    slots = rng.permutation(most)[: int(rng.integers(1, most + 1))]
    figures = []
    for slot in sorted(slots):
        radius = float(rng.uniform(0.55, 0.95)) * min(size[0] / most, size[1]) / 2
        x = float(size[0] * (slot + 0.5) / most + rng.uniform(-0.1, 0.1) * radius)
        y = float(rng.uniform(0.9 * radius, size[1] - 0.9 * radius))
        figures.append(_figure(rng, pen, (x, y), radius, size))
    grain = rng.normal(0, 8, (size[1], size[0], 1))
    pixels = np.asarray(image.filter(ImageFilter.GaussianBlur(0.6)), np.float32) + grain
    return Picture(name, split, Image.fromarray(pixels.clip(0, 255).astype(np.uint8)), figures)


def _figure(
    rng: np.random.Generator, pen: ImageDraw.ImageDraw, middle: Point, radius: float, size: tuple[int, int]
) -> Figure:
    kind = str(rng.choice(list(SKELETONS)))
    colours = [_strong(rng) for _ in range(2)]
    made = {"person": _person, "fish": _fish, "clock": _clock}[kind](rng, pen, middle, radius, colours)
    hidden = _cover(rng, pen, made, radius) if rng.random() < 0.1 else None
    points = []
    for x, y in made:
        inside = 0 <= x < size[0] and 0 <= y < size[1]
        under = hidden is not None and hidden[0] <= x <= hidden[2] and hidden[1] <= y <= hidden[3]
        points.append((x + 0.5, y + 0.5, 1 if under else 2) if inside else (0.0, 0.0, 0))
    seen = np.array([(x, y) for x, y, v in points if v])
    if kind == "clock":
        seen = np.array(middle) + np.array([[-0.85, -0.85], [0.85, 0.85]]) * radius
    x0, y0 = np.maximum(seen.min(0) - 0.1 * radius, 0)
    x1, y1 = np.minimum(seen.max(0) + 0.1 * radius, size)
    return Figure(kind, points, (float(x0), float(y0), float(x1 - x0), float(y1 - y0)))


def _strong(rng: np.random.Generator) -> tuple[int, ...]:
    """A colour that stands out from the ground."""
    return tuple(int(c) for c in np.where(rng.random(3) < 0.5, rng.integers(0, 60, 3), rng.integers(196, 256, 3)))


def _cover(
    rng: np.random.Generator, pen: ImageDraw.ImageDraw, made: list[Point], radius: float
) -> tuple[float, float, float, float]:
    """Lay a card upon one of the points."""
    x, y = made[int(rng.integers(len(made)))]
    card = x - 0.12 * radius, y - 0.12 * radius, x + 0.12 * radius, y + 0.12 * radius
    pen.rectangle(card, fill=tuple(int(c) for c in rng.integers(0, 256, 3)))
    return card


def _at(start: Point, angle: float, length: float) -> Point:
    """`length` from `start` towards `angle`, which counts clockwise from straight down."""
    return start[0] - length * math.sin(angle), start[1] + length * math.cos(angle)


def _person(
    rng: np.random.Generator, pen: ImageDraw.ImageDraw, middle: Point, radius: float, colours: list[tuple[int, ...]]
) -> list[Point]:
    lean = float(rng.uniform(-0.35, 0.35))
    thick = max(2, round(0.07 * radius))
    hip = _at(middle, lean, 0.1 * radius)
    neck = _at(hip, lean + math.pi, 0.5 * radius)
    head = _at(neck, lean + math.pi, 0.25 * radius)
    ends = []
    for root, upper, lower in ((neck, (0.5, 2.2), 0.32), (hip, (0.15, 0.8), 0.42)):
        for side in (-1, 1):  # its left is the reader's right
            first = lean + side * float(rng.uniform(*upper))
            joint = _at(root, first, lower * radius)
            ends.append((root, joint, _at(joint, first + side * float(rng.uniform(-0.2, 1.0)), lower * radius)))
    for root, joint, end in ends:
        pen.line([root, joint, end], fill=colours[0], width=thick, joint="curve")
        _disc(pen, end, 0.06 * radius, colours[1])
    pen.line([neck, hip], fill=colours[0], width=round(2.2 * thick))
    _disc(pen, head, 0.17 * radius, colours[1])
    (_, le, lh), (_, re, rh), (_, lk, lf), (_, rk, rf) = ends
    return [head, neck, le, re, lh, rh, hip, lk, rk, lf, rf]


def _fish(
    rng: np.random.Generator, pen: ImageDraw.ImageDraw, middle: Point, radius: float, colours: list[tuple[int, ...]]
) -> list[Point]:
    turn = float(rng.uniform(0, 2 * math.pi))
    snout, root = _at(middle, turn, 0.75 * radius), _at(middle, turn + math.pi, 0.45 * radius)
    bend = turn + math.pi + float(rng.uniform(-0.6, 0.6))
    tail = _at(root, bend, 0.35 * radius)
    fins = [_at(middle, turn + side * float(rng.uniform(1.6, 2.2)), 0.55 * radius) for side in (1, -1)]
    breadth = [_at(middle, turn + side * math.pi / 2, 0.28 * radius) for side in (1, -1)]
    for fin, near in zip(fins, breadth, strict=True):
        pen.polygon([_at(near, turn, 0.15 * radius), fin, _at(near, turn + math.pi, 0.1 * radius)], fill=colours[1])
    pen.polygon([snout, breadth[0], root, breadth[1]], fill=colours[0])
    flukes = [_at(tail, bend + side * 0.7, 0.3 * radius) for side in (1, -1)]
    pen.polygon([root, flukes[0], tail, flukes[1]], fill=colours[0])
    return [snout, fins[1], fins[0], tail]


def _clock(
    rng: np.random.Generator, pen: ImageDraw.ImageDraw, middle: Point, radius: float, colours: list[tuple[int, ...]]
) -> list[Point]:
    hour, minute = (float(angle) for angle in rng.uniform(0, 2 * math.pi, 2))
    _disc(pen, middle, 0.85 * radius, colours[0])
    tips = [_at(middle, hour, 0.42 * radius), _at(middle, minute, 0.75 * radius)]
    dark = sum(colours[0]) > 380
    ink = (20, 20, 20) if dark else (240, 240, 240)
    for tip, thick in zip(tips, (0.1, 0.05), strict=True):
        pen.line([middle, tip], fill=ink, width=max(2, round(thick * radius)))
    _disc(pen, middle, 0.08 * radius, ink)
    return [middle, *tips]


def _disc(pen: ImageDraw.ImageDraw, middle: Point, radius: float, colour: tuple[int, ...]) -> None:
    x, y = middle
    pen.ellipse([x - radius, y - radius, x + radius, y + radius], fill=colour)
