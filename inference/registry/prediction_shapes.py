"""Answers as annotations: boxes, outlines, masks and points in COCO's words; labels of whole pictures."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from aiplatform.lib.numbers import finite
from inference.kit.task_kinds import TASKS
from inference.registry.prediction_lines import Line, word


def draft_of(task: str) -> str:
    """What answers of a task are as annotations: SHAPES, CLASSES, or "" for none."""
    return TASKS[task].answer.draft if task in TASKS else ""


def score_of(prediction: Mapping[str, Any]) -> float:
    return finite(prediction.get("score")) or 0.0


def to_coco(line: Line, classes: Sequence[Mapping[str, Any]], *, min_score: float = 0.0) -> Iterable[dict[str, Any]]:
    """Yield COCO annotations of the predictions of an image, without ids; skips unknown classes and missing boxes.

    Each has `category_id`, `bbox` (x, y, width, height in pixels), `area`, `iscrowd`, `score`, and `segmentation` or
    `keypoints` where the task has them.
    """
    entries = {entry.get("id"): entry for entry in classes}
    for prediction in line.get("predictions", ()):
        entry = entries.get(prediction.get("class_id"))
        if entry is None or score_of(prediction) < min_score:
            continue
        shape = _keypoint_shape(prediction, entry) if "keypoints" in prediction else _box_shape(prediction, line)
        if shape is not None:
            yield {"category_id": entry["id"], **shape, "iscrowd": 0, "score": round(score_of(prediction), 6)}


def _box_shape(prediction: Mapping[str, Any], line: Line) -> dict[str, Any] | None:
    corners = box_of(prediction, line["width"], line["height"])
    if corners is None:
        return None
    x1, y1, x2, y2 = corners
    bbox, area = [x1, y1, round(x2 - x1, 2), round(y2 - y1, 2)], round((x2 - x1) * (y2 - y1), 2)
    if mask := mask_of(prediction, line):
        return {"bbox": bbox, "area": round(area_of(prediction, line) or area, 2), "segmentation": mask}
    if rings := rings_of(prediction):
        return {"bbox": bbox, "area": round(sum(map(_ring_area, rings)), 2) or area, "segmentation": rings}
    return {"bbox": bbox, "area": area, "segmentation": [[x1, y1, x2, y1, x2, y2, x1, y2]]}


def box_of(prediction: Mapping[str, Any], width: int, height: int) -> list[float] | None:
    """Return x1 y1 x2 y2 of a prediction, clipped to its image; None if it has no box with an area."""
    box = prediction.get("box")  # x1 y1 x2 y2 in pixels of its picture
    numbers = [finite(value) for value in box] if isinstance(box, list) and len(box) == 4 else []
    if len(numbers) != 4 or None in numbers:
        return None
    x1, y1, x2, y2 = (
        round(min(max(n or 0.0, 0.0), limit), 2) for n, limit in zip(numbers, (width, height) * 2, strict=True)
    )
    return [x1, y1, x2, y2] if x2 > x1 and y2 > y1 else None


def rest_of(prediction: Mapping[str, Any], without: Container[str]) -> dict[str, Any]:
    """Return the fields of a prediction except its box and those named."""
    box = prediction.get("box")
    return {name: value for name, value in prediction.items() if value is not box and name not in without}


def rings_of(prediction: Mapping[str, Any]) -> list[list[float]]:
    """Return its outlines, x and y in turn; those with less than three points are left out."""
    polygon = prediction.get("polygon")
    rings = (
        [[finite(value) for value in ring] for ring in polygon if isinstance(ring, list)]
        if isinstance(polygon, list)
        else []
    )
    return [[n or 0.0 for n in ring] for ring in rings if len(ring) >= 6 and len(ring) % 2 == 0 and None not in ring]


def mask_of(prediction: Mapping[str, Any], line: Line) -> dict[str, Any] | None:
    """Return its mask as COCO's compressed runs, if it has one of the size of the image."""
    mask = prediction.get("mask")
    if not isinstance(mask, dict) or mask.get("size") != [line["height"], line["width"]]:
        return None
    counts = word(mask.get("counts"), 64 << 20)
    return {"size": mask["size"], "counts": counts} if counts else None


def area_of(prediction: Mapping[str, Any], line: Line) -> float | None:
    """Return the pixels of a mask from its share of the image."""
    share = finite(prediction.get("share"))
    return None if share is None else share * line["width"] * line["height"]


def _ring_area(ring: Sequence[float]) -> float:
    xs, ys = ring[0::2], ring[1::2]
    turned = zip(xs, ys, [*xs[1:], xs[0]], [*ys[1:], ys[0]], strict=True)
    return abs(sum(x * next_y - next_x * y for x, y, next_x, next_y in turned)) / 2


def points_of(prediction: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return name → x, y of its keypoints."""
    keypoints = prediction.get("keypoints")
    rows = [row for row in keypoints if isinstance(row, dict)] if isinstance(keypoints, list) else []
    placed = ((word(row.get("name"), 100), finite(row.get("x")), finite(row.get("y"))) for row in rows)
    return {name: (x, y) for name, x, y in placed if x is not None and y is not None}


def _keypoint_shape(prediction: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the keypoints in the order of the class; 2 is visible, 0 not named. The box is their bounding box."""
    points = points_of(prediction)
    if not points:
        return None
    order = entry.get("keypoints")
    names = order if isinstance(order, list) and order else list(points)
    flat = [value for name in names for value in ((*points[name], 2) if name in points else (0, 0, 0))]
    xs, ys = [x for x, _ in points.values()], [y for _, y in points.values()]
    x, y, width, height = min(xs), min(ys), max(max(xs) - min(xs), 1.0), max(max(ys) - min(ys), 1.0)
    corners = [x, y, x + width, y, x + width, y + height, x, y + height]
    bbox = [round(value, 2) for value in (x, y, width, height)]
    return {
        "bbox": bbox, "area": round(width * height, 2), "segmentation": [corners], "keypoints": flat,
        "num_keypoints": sum(name in points for name in names),
    }  # fmt: skip


def label_of(line: Line, classes: Sequence[Mapping[str, Any]], *, min_score: float = 0.0) -> int | None:
    """Return the class id of a whole image: that of its best prediction; None if its score is too low."""
    class_ids = {entry.get("id") for entry in classes}
    best = max(line.get("predictions", ()), key=score_of, default=None)
    if best is None or score_of(best) < min_score or best.get("class_id") not in class_ids:
        return None
    return int(best["class_id"])
