"""A small detection data set, drawn here: handwritten digits on textured grounds.

The digits are scikit-learn's copy of the UCI "Optical recognition of handwritten digits"
set (8×8 pixels, shipped inside its wheel); grounds, places and sizes are drawn by a seeded
generator, so boxes are exact and every run makes the same pictures.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter
from sklearn.datasets import load_digits

WIDTH, HEIGHT = 320, 240
COUNTS = {"train": 160, "val": 24, "test": 40}
CLASSES = tuple(range(10))
SIZES = (36, 64)  # side of a digit in pixels, from, to


@dataclass(frozen=True)
class Drawing:
    """One image with its truth.

    `boxes` are (class name, x, y, width, height) in pixels; the box hugs the ink.
    """

    name: str
    split: str
    image: Image.Image
    boxes: list[tuple[str, float, float, float, float]]


def draw(counts: dict[str, int], *, classes: tuple[int, ...], seed: int = 7) -> list[Drawing]:
    """Draw `counts[split]` pictures per split with three to seven digits of `classes` each.

    Digits of the test split are written by hands the other splits do not show: the last
    third of the source is kept for it.
    """
    rng = np.random.default_rng(seed)
    source = load_digits()
    made: list[Drawing] = []
    cut = len(source.images) * 2 // 3
    for split, count in counts.items():
        rows = np.arange(cut, len(source.images)) if split == "test" else np.arange(cut)
        rows = rows[np.isin(source.target[rows], classes)]
        for number in range(count):
            image, boxes = _drawing(rng, source.images, source.target, rows)
            made.append(Drawing(f"{split or 'plain'}_{number:03d}.jpg", split, image, boxes))
    return made


def write(folder: Path, made: list[Drawing], *, annotated: bool) -> Path:
    """Write images and, if `annotated`, one COCO file (ids from 1, split per image); returns `folder`."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for drawing in made:
        drawing.image.save(folder / "images" / drawing.name, quality=92)
    if annotated:
        (folder / "annotations.json").write_text(json.dumps(_coco(made)))
    return folder


def _coco(made: list[Drawing]) -> dict[str, object]:
    names = sorted({box[0] for drawing in made for box in drawing.boxes})
    ids = {name: number for number, name in enumerate(names, start=1)}
    images: list[dict[str, object]] = []
    annotations: list[dict[str, object]] = []
    for image_id, drawing in enumerate(made, start=1):
        images.append(
            {"id": image_id, "file_name": drawing.name, "width": WIDTH, "height": HEIGHT, "split": drawing.split}
        )
        for name, x, y, w, h in drawing.boxes:
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image_id,
                    "category_id": ids[name],
                    "bbox": [x, y, w, h],
                    "area": w * h,
                    "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]],
                    "iscrowd": 0,
                    "attributes": {"shape": "bbox"},
                }
            )
    categories = [{"id": ids[name], "name": name, "supercategory": "digit"} for name in names]
    return {
        "info": {"description": "Handwritten digits on textured grounds", "version": "1.0"},
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": categories,
    }


def _ground(rng: np.random.Generator) -> Image.Image:
    """A soft two-scale texture in a random tint."""
    coarse = rng.integers(90, 200, (6, 8, 3), dtype=np.uint8)
    fine = rng.normal(0, 10, (HEIGHT, WIDTH, 1))
    base = np.asarray(Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC), dtype=np.float32)
    ground = Image.fromarray(np.clip(base + fine, 0, 255).astype(np.uint8))
    return ground.filter(ImageFilter.GaussianBlur(0.7))


def _drawing(
    rng: np.random.Generator, inks: np.ndarray, targets: np.ndarray, rows: np.ndarray
) -> tuple[Image.Image, list[tuple[str, float, float, float, float]]]:
    canvas = np.asarray(_ground(rng), dtype=np.float32).copy()
    boxes: list[tuple[str, float, float, float, float]] = []
    taken: list[tuple[int, int, int]] = []
    for _digit in range(int(rng.integers(3, 8))):
        row, side = int(rng.choice(rows)), int(rng.integers(*SIZES))
        spot = _free_spot(rng, taken, side)
        if spot is None:
            continue
        x, y = spot
        taken.append((x, y, side))
        small = Image.fromarray(np.clip(inks[row] * 16, 0, 255).astype(np.uint8))
        ink = np.asarray(small.resize((side, side), Image.Resampling.BICUBIC), dtype=np.float32) / 255
        ink = np.clip((ink - 0.15) * 1.6, 0, 1)[..., None]
        colour = rng.uniform(0, 60, 3) if rng.random() < 0.5 else rng.uniform(215, 255, 3)
        canvas[y : y + side, x : x + side] = canvas[y : y + side, x : x + side] * (1 - ink) + colour * ink
        seen_y, seen_x = np.nonzero(ink[..., 0] > 0.25)
        left, top = x + int(seen_x.min()), y + int(seen_y.min())
        width, height = int(np.ptp(seen_x)) + 1, int(np.ptp(seen_y)) + 1
        boxes.append((str(targets[row]), float(left), float(top), float(width), float(height)))
    return Image.fromarray(canvas.astype(np.uint8)), boxes


def _free_spot(rng: np.random.Generator, taken: list[tuple[int, int, int]], side: int) -> tuple[int, int] | None:
    for _try in range(30):
        x, y = int(rng.integers(2, WIDTH - side - 2)), int(rng.integers(2, HEIGHT - side - 2))
        if all(abs(x - a) >= (side + s) // 2 + 4 or abs(y - b) >= (side + s) // 2 + 4 for a, b, s in taken):
            return x, y
    return None
