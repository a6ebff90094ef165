"""Masks: what each pixel of an image shows, drawn from the shapes of a dataset version.

A mask is uint8 [H, W]: 0 is the ground, 1 to C are the classes, 255 is left out of learning and scoring. Larger shapes
are drawn first, so that what lies on top of them stays to be seen.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from faster_coco_eval.core import mask as coco_masks
from PIL import Image

from . import data, image_cache

GROUND, IGNORED = 0, 255
MOST_CLASSES = MOST_OBJECTS = IGNORED - 1
ROUND = 48  # corners of an ellipse
BOX = "bbox"  # how annotations.json names the shape of a box

Shape = dict[str, Any]


def read(version: data.Version) -> list[list[Shape]]:
    """The shapes of each image, in the order they are drawn: crowds, then the larger before the smaller.

    Shapes without area and those of classes that the version does not name are left out.
    """
    coco = json.loads((version.folder / "annotations.json").read_text())
    row_of = {image.path: row for row, image in enumerate(version.images)}
    row_of_id = {entry["id"]: row_of[entry["file_name"]] for entry in coco["images"] if entry["file_name"] in row_of}
    per_image: list[list[Shape]] = [[] for _ in version.images]
    for shape in coco["annotations"]:
        row = row_of_id.get(shape["image_id"])
        if row is not None and min(shape["bbox"][2:]) > 0 and shape["category_id"] in version.class_index:
            per_image[row].append(shape)
    for shapes in per_image:
        shapes.sort(
            key=lambda shape: (not shape.get("iscrowd"), -float(shape.get("area") or math.prod(shape["bbox"][2:])))
        )
    return per_image


def is_box(shape: Shape) -> bool:
    """Whether nobody outlined the object: a box, or nothing but a bbox."""
    named = (shape.get("attributes") or {}).get("shape") == BOX
    return not isinstance(shape.get("segmentation"), dict) and (named or not shape.get("segmentation"))


def open_or_make(
    version: data.Version,
    shapes: list[list[Shape]],
    cache: Path,
    *,
    width: int,
    height: int,
    resize: str,
    boxes: str,
    objects: bool = False,
) -> image_cache.ImageCache:
    """The masks of all images at this size, [H, W, 1], drawn first where they are missing.

    Args:
        boxes: what stands for an object with only a box: the "ellipse" in it, the "whole" box, or "ignore": nothing.
        objects: a pixel says which object of its image it shows, numbered as they are drawn, not which class.
    """
    content = [[(i.path, i.width, i.height) for i in version.images], sorted(version.class_index.items()), shapes]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    name = f"{'objects' if objects else 'masks'}{image_cache.FORMAT_VERSION}-{digest}-{width}x{height}-{resize}-{boxes}"

    def drawn(row: int) -> np.ndarray:
        image = version.images[row]
        if resize == "letterbox":
            scale, left, top = image_cache.letterbox(image.width, image.height, width, height)
            inner = (round(image.width * scale), round(image.height * scale))
        else:
            left, top, inner = 0, 0, (width, height)
        mask = np.full((height, width, 1), IGNORED, np.uint8)
        size = (image.width, image.height)
        if objects:
            own = draw_objects(shapes[row], size, inner, boxes=boxes)
        else:
            own = draw(shapes[row], size, inner, version.class_index, boxes=boxes)
        mask[top : top + inner[1], left : left + inner[0], 0] = own
        return mask

    return image_cache.kept(cache, name, (len(version.images), height, width, 1), drawn)


def draw(
    shapes: list[Shape], size: tuple[int, int], target: tuple[int, int], index: dict[int, int], *, boxes: str
) -> np.ndarray:
    """The mask of an image of `size` (width, height) as it is at `target`; `index` is class id → 0..C-1."""
    return _painted(shapes, [index[shape["category_id"]] + 1 for shape in shapes], size, target, boxes)


def draw_objects(shapes: list[Shape], size: tuple[int, int], target: tuple[int, int], *, boxes: str) -> np.ndarray:
    """Which object each pixel shows: 1 for the first that is no crowd; those beyond MOST_OBJECTS are left out."""
    numbers, last = [], 0
    for shape in shapes:
        last += not shape.get("iscrowd")
        numbers.append(min(last, IGNORED))
    return _painted(shapes, numbers, size, target, boxes)


def _painted(
    shapes: list[Shape], numbers: list[int], size: tuple[int, int], target: tuple[int, int], boxes: str
) -> np.ndarray:
    """Shapes drawn one upon another by their numbers; crowds, and boxes that nothing stands for, below them."""
    mask = np.full((target[1], target[0]), GROUND, np.uint8)
    across, down = target[0] / size[0], target[1] / size[1]
    hidden = [shape for shape in shapes if shape.get("iscrowd") or (boxes == "ignore" and is_box(shape))]
    for shape in hidden:
        mask[covered(shape, across, down, target, "whole")] = IGNORED
    for shape, number in zip(shapes, numbers, strict=True):
        if not any(shape is one for one in hidden):
            mask[covered(shape, across, down, target, boxes)] = number
    return mask


def covered(shape: Shape, across: float, down: float, target: tuple[int, int], boxes: str) -> np.ndarray:
    """Which pixels of the target a shape covers, bool [H, W]."""
    width, height = target
    segmentation = shape.get("segmentation")
    if isinstance(segmentation, dict):
        runs = segmentation
        if isinstance(runs["counts"], list):
            runs = coco_masks.frPyObjects(runs, *runs["size"])
        own = Image.fromarray(coco_masks.decode(runs))
        return np.asarray(own if own.size == target else own.resize(target, Image.Resampling.NEAREST), bool)
    rings = (
        [_around(shape["bbox"], boxes)] if is_box(shape) else [ring for ring in segmentation or [] if len(ring) >= 6]
    )
    scaled = [[value * (down if place % 2 else across) for place, value in enumerate(ring)] for ring in rings]
    if not scaled:
        return np.zeros((height, width), bool)
    return np.asarray(coco_masks.decode(coco_masks.merge(coco_masks.frPyObjects(scaled, height, width))), bool)


def _around(bbox: list[float], boxes: str) -> list[float]:
    """The ring that stands for a box."""
    x, y, w, h = bbox
    if boxes != "ellipse":
        return [x, y, x + w, y, x + w, y + h, x, y + h]
    turns = [2 * math.pi * step / ROUND for step in range(ROUND)]
    return [v for t in turns for v in (x + w / 2 * (1 + math.cos(t)), y + h / 2 * (1 + math.sin(t)))]
