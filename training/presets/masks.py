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

from . import data, image_cache, tiles
from .tiling import runs as coco_runs

GROUND, IGNORED = 0, 255
MAX_CLASSES = MAX_OBJECTS = IGNORED - 1
MANY_IGNORED = 65_535  # where objects of an image have two bytes
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
    """Return whether the object has no outline: it is a box, or only has a bbox."""
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
    name = _name("objects" if objects else "masks", version, shapes, f"{width}x{height}-{resize}", boxes)

    def drawn(row: int) -> np.ndarray:
        image = version.images[row]
        if resize == "letterbox":
            _, left, top = image_cache.letterbox(image.width, image.height, width, height)
            inner = image_cache.fitted(image.width, image.height, width, height)
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

    return image_cache.open_rows(cache, name, (len(version.images), height, width, 1), drawn)


def blocks(
    version: data.Version, shapes: list[list[Shape]], cache: Path, *, side: int, boxes: str, objects: bool = False
) -> tiles.Blocks:
    """Open the masks of all images at their own size, in blocks; the area outside an image is excluded from learning.

    Args:
        objects: which object of its image a pixel shows, in two bytes, see `of_blocks`.
    """

    def draw_mask(row: int) -> np.ndarray:
        size = (version.images[row].width, version.images[row].height)
        if not objects:
            return draw(shapes[row], size, size, version.class_index, boxes=boxes)[..., None]
        numbers = numbered(shapes[row]).clip(max=MANY_IGNORED).tolist()
        drawn = _painted(shapes[row], numbers, size, size, boxes, ignored=MANY_IGNORED)
        return drawn.view(np.uint8).reshape(*drawn.shape, 2)

    name = _name("objectblocks" if objects else "maskblocks", version, shapes, "own", boxes)
    channels = 2 if objects else 1
    return tiles.open_or_make(version, cache, draw_mask, name=name, side=side, channels=channels, fill=IGNORED)


def of_blocks(part: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Which object each pixel [H, W] of a part of an image shows, numbered from 1 as in `shown`.

    Args:
        part: [H, W, 2] of blocks of objects.
        shown: places of the part's objects among those of the image; to all others it is the ground.
    """
    numbers = np.zeros(MANY_IGNORED + 1, np.uint8)
    numbers[shown[: MANY_IGNORED - 1] + 1] = np.arange(1, len(shown) + 1).clip(max=IGNORED)[: MANY_IGNORED - 1]
    numbers[MANY_IGNORED] = IGNORED
    return np.asarray(numbers[np.ascontiguousarray(part).view(np.uint16)[..., 0]])


def _name(what: str, version: data.Version, shapes: list[list[Shape]], size: str, boxes: str) -> str:
    """Says all that masks depend on."""
    content = [[(i.path, i.width, i.height) for i in version.images], sorted(version.class_index.items()), shapes]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    return f"{what}{image_cache.FORMAT_VERSION}-{digest}-{size}-{boxes}"


def draw(
    shapes: list[Shape], size: tuple[int, int], target: tuple[int, int], index: dict[int, int], *, boxes: str
) -> np.ndarray:
    """The mask of an image of `size` (width, height) as it is at `target`; `index` is class id → 0..C-1."""
    return _painted(shapes, [index[shape["category_id"]] + 1 for shape in shapes], size, target, boxes)


def draw_objects(shapes: list[Shape], size: tuple[int, int], target: tuple[int, int], *, boxes: str) -> np.ndarray:
    """Which object each pixel shows: 1 for the first that is no crowd; those beyond MAX_OBJECTS are left out."""
    numbers = numbered(shapes).clip(max=IGNORED)
    return _painted(shapes, numbers.tolist(), size, target, boxes)


def numbered(shapes: list[Shape]) -> np.ndarray:
    """The number of each shape's object in the order they are drawn, from 1; a crowd has that of the one before."""
    return np.cumsum([not shape.get("iscrowd") for shape in shapes], dtype=np.int64)


def _painted(
    shapes: list[Shape],
    numbers: list[int],
    size: tuple[int, int],
    target: tuple[int, int],
    boxes: str,
    *,
    ignored: int = IGNORED,
) -> np.ndarray:
    """Draw shapes over one another by their numbers; crowds and ignored boxes are drawn below them."""
    mask = np.full((target[1], target[0]), GROUND, np.min_scalar_type(ignored), order="F")  # as runs go
    across, down = target[0] / size[0], target[1] / size[1]
    hidden = [bool(shape.get("iscrowd")) or (boxes == "ignore" and is_box(shape)) for shape in shapes]
    for shape, hides in zip(shapes, hidden, strict=True):
        if hides:
            _paint(mask, shape, across, down, "whole", ignored)
    for shape, number, hides in zip(shapes, numbers, hidden, strict=True):
        if not hides:
            _paint(mask, shape, across, down, boxes, number)
    return np.ascontiguousarray(mask)


def _paint(mask: np.ndarray, shape: Shape, across: float, down: float, boxes: str, number: int) -> None:
    """Draw one shape; a small one on a large image costs as little as it is small."""
    target = mask.shape[1], mask.shape[0]
    runs = _runs(shape, across, down, target, boxes)
    if runs is None or tuple(runs["size"]) != mask.shape:
        mask[covered(shape, across, down, target, boxes)] = number
        return
    coco_runs.paint(mask, runs["counts"], number)


def covered(shape: Shape, across: float, down: float, target: tuple[int, int], boxes: str) -> np.ndarray:
    """Which pixels of the target a shape covers, bool [H, W]."""
    runs = _runs(shape, across, down, target, boxes)
    if runs is None:
        return np.zeros((target[1], target[0]), bool)
    own = Image.fromarray(coco_masks.decode(runs))
    return np.asarray(own if own.size == target else own.resize(target, Image.Resampling.NEAREST), bool)


def encoded(shape: Shape, size: tuple[int, int], boxes: str) -> dict[str, Any]:
    """What a shape covers of an image of this size, as COCO's runs."""
    runs = _runs(shape, 1, 1, size, boxes)
    if runs is not None and tuple(runs["size"]) == size[::-1]:
        return runs
    return coco_runs.encode(covered(shape, 1, 1, size, boxes))


def _runs(shape: Shape, across: float, down: float, target: tuple[int, int], boxes: str) -> dict[str, Any] | None:
    """Return a shape as COCO's compressed runs, of the target or of a mask of its own size; None if it is empty."""
    width, height = target
    segmentation = shape.get("segmentation")
    if isinstance(segmentation, dict):
        plain = isinstance(segmentation["counts"], list)
        return dict(coco_masks.frPyObjects(segmentation, *segmentation["size"]) if plain else segmentation)
    rings = (
        [_around(shape["bbox"], boxes)] if is_box(shape) else [ring for ring in segmentation or [] if len(ring) >= 6]
    )
    scaled = [[value * (down if index % 2 else across) for index, value in enumerate(ring)] for ring in rings]
    return dict(coco_masks.merge(coco_masks.frPyObjects(scaled, height, width))) if scaled else None


def _around(bbox: list[float], boxes: str) -> list[float]:
    """Return the ring that represents a box."""
    x, y, w, h = bbox
    if boxes != "ellipse":
        return [x, y, x + w, y, x + w, y + h, x, y + h]
    turns = [2 * math.pi * step / ROUND for step in range(ROUND)]
    return [v for t in turns for v in (x + w / 2 * (1 + math.cos(t)), y + h / 2 * (1 + math.sin(t)))]
