"""What each pixel of a judged image really shows, drawn from its annotations as the training draws its masks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from faster_coco_eval.core import mask as coco_masks
from numpy.typing import NDArray
from PIL import Image

from training.presets.tiling import runs

GROUND, IGNORED = 0, 255
ROUND = 48  # corners of an ellipse
BOX = "bbox"  # how annotations.json names the shape of a box


def draw(
    annotations: Sequence[Mapping[str, Any]], size: tuple[int, int], index: Mapping[int, int], *, boxes: str
) -> NDArray[np.uint8]:
    """Return the map [H, W] of an image of `size` (width, height): 0 is background, 255 is not evaluated.

    Args:
        index: class id → number on the map, from 1.
        boxes: shape used for an object that has only a box: "ellipse", "whole" or "ignore".
    """
    drawn = np.full((size[1], size[0]), GROUND, np.uint8, order="F")  # as runs go
    shapes = [
        annotation
        for annotation in annotations
        if annotation["category_id"] in index and min(annotation["bbox"][2:]) > 0
    ]
    shapes.sort(key=lambda annotation: -float(annotation.get("area") or math.prod(annotation["bbox"][2:])))
    hidden = [bool(annotation.get("iscrowd")) or (boxes == "ignore" and is_box(annotation)) for annotation in shapes]
    for annotation, is_hidden in zip(shapes, hidden, strict=True):
        if is_hidden:
            runs.paint(drawn, encoded(annotation, size, "whole")["counts"], IGNORED)
    for annotation, is_hidden in zip(shapes, hidden, strict=True):
        if not is_hidden:
            runs.paint(drawn, encoded(annotation, size, boxes)["counts"], index[annotation["category_id"]])
    return np.ascontiguousarray(drawn)


def is_box(annotation: Mapping[str, Any]) -> bool:
    """Whether the object has no outline: a box, or only a bbox."""
    named = (annotation.get("attributes") or {}).get("shape") == BOX
    return not isinstance(annotation.get("segmentation"), dict) and (named or not annotation.get("segmentation"))


def encoded(annotation: Mapping[str, Any], size: tuple[int, int], boxes: str) -> dict[str, Any]:
    """Which pixels of an image of `size` (width, height) one annotation covers, as COCO's runs."""
    segmentation = annotation.get("segmentation")
    if isinstance(segmentation, dict):
        own = segmentation
        if isinstance(own["counts"], list):
            own = coco_masks.frPyObjects(own, *own["size"])
        if tuple(own["size"]) == size[::-1]:
            return dict(own)
        mask = Image.fromarray(coco_masks.decode(own)).resize(size, Image.Resampling.NEAREST)
        return runs.encode(np.asarray(mask, bool))
    rings = [around(annotation["bbox"], boxes)] if is_box(annotation) else segmentation or []
    rings = [[float(value) for value in ring] for ring in rings if len(ring) >= 6]
    if not rings:
        return runs.encode(np.zeros((0, 0), bool), size=size)
    return dict(coco_masks.merge(coco_masks.frPyObjects(rings, size[1], size[0])))


def around(bbox: Sequence[float], boxes: str) -> list[float]:
    """Return the ring that is used for a box."""
    x, y, w, h = bbox
    if boxes != "ellipse":
        return [x, y, x + w, y, x + w, y + h, x, y + h]
    turns = [2 * math.pi * step / ROUND for step in range(ROUND)]
    return [v for t in turns for v in (x + w / 2 * (1 + math.cos(t)), y + h / 2 * (1 + math.sin(t)))]
