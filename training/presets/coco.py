"""COCO's figures of what was found, by faster-coco-eval."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
from faster_coco_eval import COCO, COCOeval_faster

from . import data


def truth(
    version: data.Version, names: list[str], objects: list[tuple[np.ndarray, np.ndarray]], rows: list[int]
) -> dict[str, Any]:
    """Return the ground truth of these images in COCO format; ids are row + 1 and class index + 1."""
    images: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    for row in rows:
        image = version.images[row]
        images.append({"id": row + 1, "width": image.width, "height": image.height, "file_name": image.path})
        for (x0, y0, x1, y1), index in zip(*objects[row], strict=True):
            box = [float(x0), float(y0), float(x1 - x0), float(y1 - y0)]
            shape = {"id": len(shapes) + 1, "image_id": row + 1, "category_id": int(index) + 1, "iscrowd": 0}
            shapes.append({**shape, "bbox": box, "area": box[2] * box[3]})
    categories = [{"id": index + 1, "name": name} for index, name in enumerate(names)]
    return {"info": {}, "images": images, "annotations": shapes, "categories": categories}


def figures(ground_truth: dict[str, Any], results: list[dict[str, Any]], names: list[str]) -> dict[str, float]:
    """Return COCO's AP, and the AP of each class at IoU 0.5."""
    metrics = {"val/ap": 0.0, "val/ap50": 0.0, "val/ap75": 0.0}
    if not results:
        return metrics
    stats, exactness = precision(ground_truth, results)
    metrics = dict(zip(metrics, stats, strict=True))
    for index, name in enumerate(names):
        if (exactness[:, index] > -1).any():
            metrics[f"val/ap50/{name}"] = float(exactness[:, index].mean())
    return metrics


def precision(
    ground_truth: dict[str, Any], results: list[dict[str, Any]], *, masks: bool = False
) -> tuple[list[float], np.ndarray]:
    """Return COCO's AP, AP50 and AP75, and the precision at IoU 0.5 as recall × class.

    Args:
        masks: it is masks that overlap, not boxes.
    """
    with contextlib.redirect_stdout(io.StringIO()):
        there = COCO(ground_truth)
        predictions = there.loadRes(results)
        judge = COCOeval_faster(there, predictions, "segm") if masks else COCOeval_faster(there, predictions, "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return [max(0.0, float(value)) for value in judge.stats[:3]], judge.eval["precision"][0, :, :, 0, -1]
