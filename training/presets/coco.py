"""COCO's figures of what was found, by faster-coco-eval."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
from faster_coco_eval import COCO, COCOeval_faster

from . import data


def truth(
    version: data.Version, names: list[str], known: list[tuple[np.ndarray, np.ndarray]], rows: list[int]
) -> dict[str, Any]:
    """The truth of these images as COCO wants it; ids are row + 1 and class index + 1."""
    images: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    for row in rows:
        image = version.images[row]
        images.append({"id": row + 1, "width": image.width, "height": image.height, "file_name": image.path})
        for (x0, y0, x1, y1), index in zip(*known[row], strict=True):
            box = [float(x0), float(y0), float(x1 - x0), float(y1 - y0)]
            shape = {"id": len(shapes) + 1, "image_id": row + 1, "category_id": int(index) + 1, "iscrowd": 0}
            shapes.append({**shape, "bbox": box, "area": box[2] * box[3]})
    categories = [{"id": index + 1, "name": name} for index, name in enumerate(names)]
    return {"info": {}, "images": images, "annotations": shapes, "categories": categories}


def figures(known: dict[str, Any], results: list[dict[str, Any]], names: list[str]) -> dict[str, float]:
    """COCO's AP, and that of each class at half overlap."""
    found = {"val/ap": 0.0, "val/ap50": 0.0, "val/ap75": 0.0}
    if not results:
        return found
    stats, exactness = precision(known, results)
    found = dict(zip(found, stats, strict=True))
    for index, name in enumerate(names):
        if (exactness[:, index] > -1).any():
            found[f"val/ap50/{name}"] = float(exactness[:, index].mean())
    return found


def precision(
    known: dict[str, Any], results: list[dict[str, Any]], *, masks: bool = False
) -> tuple[list[float], np.ndarray]:
    """AP, AP50 and AP75 as COCO has them, and the precision at an overlap of 0.5, recall × class.

    Args:
        masks: it is masks that overlap, not boxes.
    """
    with contextlib.redirect_stdout(io.StringIO()):
        there = COCO(known)
        found = there.loadRes(results)
        judge = COCOeval_faster(there, found, "segm") if masks else COCOeval_faster(there, found, "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return [max(0.0, float(value)) for value in judge.stats[:3]], judge.eval["precision"][0, :, :, 0, -1]
