"""What each pixel of a judged image really shows, drawn from its annotations as the training draws its masks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from faster_coco_eval.core import mask as coco_masks
from numpy.typing import NDArray
from PIL import Image

GROUND, IGNORED = 0, 255
ROUND = 48  # corners of an ellipse
BOX = "bbox"  # how annotations.json names the shape of a box


def draw(
    annotations: Sequence[Mapping[str, Any]], size: tuple[int, int], index: Mapping[int, int], *, boxes: str
) -> NDArray[np.uint8]:
    """The map [H, W] of an image of `size` (width, height): 0 is the ground, 255 is not judged.

    Args:
        index: class id → number on the map, from 1.
        boxes: what stands for an object that has only a box: "ellipse", "whole" or "ignore".
    """
    drawn = np.full((size[1], size[0]), GROUND, np.uint8)
    known = [one for one in annotations if one["category_id"] in index and min(one["bbox"][2:]) > 0]
    known.sort(key=lambda one: -float(one.get("area") or math.prod(one["bbox"][2:])))
    hidden = [bool(one.get("iscrowd")) or (boxes == "ignore" and is_box(one)) for one in known]
    for one, hides in zip(known, hidden, strict=True):
        if hides:
            drawn[covered(one, size, "whole")] = IGNORED
    for one, hides in zip(known, hidden, strict=True):
        if not hides:
            drawn[covered(one, size, boxes)] = index[one["category_id"]]
    return drawn


def is_box(annotation: Mapping[str, Any]) -> bool:
    """Whether nobody outlined the object: a box, or nothing but a bbox."""
    named = (annotation.get("attributes") or {}).get("shape") == BOX
    return not isinstance(annotation.get("segmentation"), dict) and (named or not annotation.get("segmentation"))


def covered(annotation: Mapping[str, Any], size: tuple[int, int], boxes: str) -> NDArray[np.bool_]:
    """Which pixels [H, W] of an image of `size` (width, height) one annotation covers."""
    segmentation = annotation.get("segmentation")
    if isinstance(segmentation, dict):
        runs = segmentation
        if isinstance(runs["counts"], list):
            runs = coco_masks.frPyObjects(runs, *runs["size"])
        mask = Image.fromarray(coco_masks.decode(runs))
        return np.asarray(mask if mask.size == size else mask.resize(size, Image.Resampling.NEAREST), bool)
    rings = [around(annotation["bbox"], boxes)] if is_box(annotation) else segmentation or []
    rings = [[float(value) for value in ring] for ring in rings if len(ring) >= 6]
    if not rings:
        return np.zeros((size[1], size[0]), bool)
    merged = coco_masks.merge(coco_masks.frPyObjects(rings, size[1], size[0]))
    return np.asarray(coco_masks.decode(merged), bool)


def around(bbox: Sequence[float], boxes: str) -> list[float]:
    """The ring that stands for a box."""
    x, y, w, h = bbox
    if boxes != "ellipse":
        return [x, y, x + w, y, x + w, y + h, x, y + h]
    turns = [2 * math.pi * step / ROUND for step in range(ROUND)]
    return [v for t in turns for v in (x + w / 2 * (1 + math.cos(t)), y + h / 2 * (1 + math.sin(t)))]
