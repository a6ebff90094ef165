"""Draw what was found into a picture: boxes with their names, lines, zones, and the counts so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from inference.video.watcher.pictures import Pixels
from inference.video.watcher.zones import IN, OUT, Line, Zone

BOX = (67, 83, 214)  # of a class without a color
LINE, ZONE, GROUND, INK = (255, 255, 255), (255, 255, 255), (20, 20, 24), (255, 255, 255)
THICK = 2


def draw(
    shown: Pixels,
    size: tuple[int, int],
    boxes: NDArray[np.float64],
    kinds: NDArray[np.int64],
    numbers: NDArray[np.int64],
    names: Mapping[int, str],
    colors: Mapping[int, tuple[int, ...]],
    lines: Sequence[Line],
    zones: Sequence[Zone],
) -> None:
    """Draw into a picture of a source of `size`; only what has a number is drawn."""
    height, width = shown.shape[:2]
    scale = np.array([width / size[0], height / size[1]] * 2)
    _places(shown, lines, zones)
    for box, kind, number in zip(boxes * scale, kinds, numbers, strict=True):
        if number:
            color = colors.get(int(kind), BOX)
            x1, y1, x2, y2 = (round(float(edge)) for edge in box)
            _frame(shown, x1, y1, x2, y2, color)
            _paste(shown, x1, y1, _words(f"{_plain(names.get(int(kind), ''), int(kind))} {number}", color))


def _frame(shown: Pixels, x1: int, y1: int, x2: int, y2: int, color: tuple[int, ...]) -> None:
    height, width = shown.shape[:2]
    x1, y1 = max(x1, 0), max(y1, 0)
    x2, y2 = min(x2, width), min(y2, height)
    if x1 >= x2 or y1 >= y2:
        return
    shown[y1 : y1 + THICK, x1:x2] = color
    shown[max(y2 - THICK, y1) : y2, x1:x2] = color
    shown[y1:y2, x1 : x1 + THICK] = color
    shown[y1:y2, max(x2 - THICK, x1) : x2] = color


def _paste(shown: Pixels, x: int, y: int, label: Pixels) -> None:
    """Paste a label above a box, or inside of it where there is no space."""
    height, width = shown.shape[:2]
    label_height, label_width = label.shape[:2]
    x = min(max(x, 0), max(width - label_width, 0))
    y = y - label_height if y >= label_height else min(max(y, 0), max(height - label_height, 0))
    room = shown[y : y + label_height, x : x + label_width]
    room[...] = label[: room.shape[0], : room.shape[1]]


def _places(shown: Pixels, lines: Sequence[Line], zones: Sequence[Zone]) -> None:
    if not lines and not zones:
        return
    height, width = shown.shape[:2]
    image = Image.fromarray(shown)
    pen = ImageDraw.Draw(image)
    for zone in zones:
        points = [(x * width, y * height) for x, y in zone.points]
        pen.polygon(points, outline=ZONE, width=THICK)
    for line in lines:
        pen.line(
            [(line.start[0] * width, line.start[1] * height), (line.end[0] * width, line.end[1] * height)], LINE, 3
        )
    shown[...] = np.asarray(image)
    for zone in zones:
        x, y = zone.points[0]
        _paste(shown, round(x * width), round(y * height), _words(f"{_plain(zone.name, 0)}: {zone.inside}", GROUND))
    for line in lines:
        text = f"{_plain(line.name, 0)}: {line.counts[IN]} in, {line.counts[OUT]} out"
        _paste(shown, round(line.start[0] * width), round(line.start[1] * height), _words(text, GROUND))


@lru_cache(maxsize=2000)
def _words(text: str, ground: tuple[int, ...]) -> Pixels:
    font = ImageFont.load_default(size=12)
    left, top, right, bottom = font.getbbox(text)
    image = Image.new("RGB", (int(right - left) + 6, int(bottom - top) + 5), ground)
    ink = INK if sum(ground) < 380 else GROUND
    ImageDraw.Draw(image).text((3 - left, 2 - top), text, ink, font)
    return np.asarray(image)


def _plain(name: str, kind: int) -> str:
    """The name where the font has its letters, else a number."""
    return name if name.isascii() and name else (f"class {kind}" if kind else "")
