"""What there is to see on an image (a class, boxes, a mask, points), and drawing it for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

SIDE = 320  # of a drawn image, in pixels
WORD = 20  # px of the word of a whole image: legible where the image is shown at half its size
COARSE = 80  # cells of a mask's long side in which the thickest part of a class is looked for
DOT = 5  # px from the middle of a point to its edge, for the same reason
COLOURS = (  # those of aiplatform/lib/class_colors.py, which programs of jobs do not have
    (67, 83, 214), (15, 143, 134), (208, 116, 27), (184, 56, 138), (91, 140, 26), (135, 87, 214), (37, 132, 198),
    (163, 100, 31), (230, 25, 75), (46, 158, 62), (214, 43, 205), (128, 128, 0), (168, 132, 0),
    (224, 80, 63), (0, 138, 152), (156, 31, 74),
)  # fmt: skip
VEIL = 0.45  # how much of the colour of a mask covers its image
GROUND, IGNORED = 0, 255  # of a mask


@dataclass(frozen=True)
class Marks:
    """What one image shows, in pixels of the image it is drawn on; what a task does not know stays empty.

    Args:
        caption: of the image, its class for instance.
        boxes: x0, y0, x1, y1 of each object.
        classes: of each box, from 0; they choose its colour.
        labels: text at each box: class and confidence.
        mask: [H, W] uint8, 0 the ground, 255 what is left out, classes from 1.
        names: of the classes of the mask, each written once where the image shows it.
        points: x, y of each.
    """

    caption: str = ""
    boxes: Sequence[Sequence[float]] | np.ndarray = ()
    classes: Sequence[int] = ()
    labels: Sequence[str] = ()
    mask: np.ndarray | None = None
    names: Sequence[str] = ()
    points: Sequence[Sequence[float]] | np.ndarray = ()


def boxed(names: Sequence[str], boxes: np.ndarray, classes: np.ndarray, scores: np.ndarray | None = None) -> Marks:
    """Return boxes [K, 4] labeled with their class names, and with the scores where there are any."""
    labels = [names[kind] for kind in classes]
    if scores is not None:
        labels = [f"{word} {score:.2f}" for word, score in zip(labels, scores, strict=True)]
    return Marks(boxes=boxes, classes=[int(kind) for kind in classes], labels=labels)


def colour(number: int) -> tuple[int, int, int]:
    """Colour of a class, from 0."""
    return COLOURS[number % len(COLOURS)]


def drawn(pixels: np.ndarray, marks: Marks, *, side: int = SIDE) -> Image.Image:
    """Draw an image [H, W, C] uint8 with its marks, scaled to a long side of `side`; tiny images stay sharp."""
    height, width = pixels.shape[:2]
    image = Image.fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels).convert("RGB")
    if marks.mask is not None:
        image = _veiled(image, marks.mask)
    scale = side / max(width, height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    image = image.resize(size, Image.Resampling.BILINEAR if scale < 2 else Image.Resampling.NEAREST)
    draw = ImageDraw.Draw(image)
    if marks.mask is not None:
        for number, name in enumerate(marks.names):
            if center := _middle(marks.mask, number + 1, size):
                left, top, right, bottom = draw.textbbox((0, 0), name, font=ImageFont.load_default(11))
                x, y = center[0] - (right - left) / 2, center[1] - (bottom - top) / 2
                _tag(draw, (max(x, 1), max(y, 1)), name, colour(number))
    kinds = list(marks.classes) or [0] * len(marks.boxes)
    labels = list(marks.labels) or [""] * len(marks.boxes)
    for box, kind, word in zip(marks.boxes, kinds, labels, strict=True):
        x0, y0, x1, y1 = (float(value) * scale for value in box)
        draw.rectangle((x0, y0, max(x1, x0), max(y1, y0)), outline=colour(kind), width=2)
        _tag(draw, (x0, max(y0 - 13, 0)), word, colour(kind))
    for number, point in enumerate(marks.points):
        x, y = (float(value) * scale for value in point[:2])
        draw.ellipse((x - DOT, y - DOT, x + DOT, y + DOT), fill=colour(number), outline=(255, 255, 255))
    _tag(draw, (0, 0), marks.caption, (40, 40, 40), size=round(WORD * side / SIDE))
    return image


def write(image: Image.Image, path: Path) -> None:
    """Write a JPEG that appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path.with_suffix(".tmp"), "JPEG", quality=82)
    path.with_suffix(".tmp").replace(path)


def from_model(images: Any, mean: Any, std: Any) -> np.ndarray:
    """Normalised images, a tensor [N, C, H, W], as pixels [N, H, W, C] uint8; no more than three channels."""
    across = images.detach().float().cpu().permute(0, 2, 3, 1)
    mean, std = (value.cpu() if hasattr(value, "cpu") else value for value in (mean, std))
    pixels = (across * std + mean).clamp(0, 255).round().numpy().astype(np.uint8)
    return np.asarray(pixels[..., :3] if pixels.shape[-1] > 2 else pixels[..., :1])


def _veiled(image: Image.Image, mask: np.ndarray) -> Image.Image:
    """The image below the colours of a mask of any size."""
    table = np.zeros((256, 3), np.uint8)
    for number in range(1, IGNORED):
        table[number] = colour(number - 1)
    table[IGNORED] = (128, 128, 128)
    fitted = Image.fromarray(mask.astype(np.uint8)).resize(image.size, Image.Resampling.NEAREST)
    covered = np.asarray(fitted)
    edge = np.zeros(covered.shape, bool)
    edge[:, 1:] |= covered[:, 1:] != covered[:, :-1]
    edge[1:] |= covered[1:] != covered[:-1]
    share = np.where(edge, 1.0, np.where(covered == GROUND, 0.0, VEIL))[..., None]
    return Image.fromarray((np.asarray(image) * (1 - share) + table[covered] * share).round().astype(np.uint8))


def _middle(mask: np.ndarray, number: int, size: tuple[int, int]) -> tuple[float, float] | None:
    """Where a class of a mask is in a drawing of `size`: in what is thickest of it; None where it is not there."""
    of_class = mask == number
    if not of_class.any():
        return None
    step = max(1, max(mask.shape) // COARSE)
    coarse = of_class[::step, ::step]
    coarse, step = (coarse, step) if coarse.any() else (of_class, 1)  # smaller than a cell
    framed = np.pad(coarse.astype(np.uint8), 1)  # the filter leaves what lies at the edges
    covered = left = Image.fromarray(framed)
    while left.getbbox():  # take off all around until nothing is left
        covered, left = left, left.filter(ImageFilter.MinFilter(3))
    rows, columns = np.nonzero(np.asarray(covered)[1:-1, 1:-1])
    nearest = int(np.argmin((rows - np.mean(rows)) ** 2 + (columns - np.mean(columns)) ** 2))
    height, width = mask.shape
    return float(step * columns[nearest]) * size[0] / width, float(step * rows[nearest]) * size[1] / height


def _tag(
    draw: ImageDraw.ImageDraw, position: tuple[float, float], word: str, fill: tuple[int, int, int], *, size: int = 11
) -> None:
    if not word:
        return
    font = ImageFont.load_default(size)
    left, top, right, bottom = draw.textbbox(position, word, font=font)
    draw.rectangle((left - 1, top - 1, right + 2, bottom + 1), fill=fill)
    light = sum(fill) > 420
    draw.text(position, word, font=font, fill=(0, 0, 0) if light else (255, 255, 255))
