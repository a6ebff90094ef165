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


def score_of(one: Mapping[str, Any]) -> float:
    return finite(one.get("score")) or 0.0


def shapes(line: Line, classes: Sequence[Mapping[str, Any]], *, min_score: float = 0.0) -> Iterable[dict[str, Any]]:
    """COCO annotations of the answer to a picture, without ids; those of unknown classes and without a place left out.

    Each has `category_id`, `bbox` (x, y, width, height in pixels), `area`, `iscrowd`, `score`, and `segmentation` or
    `keypoints` where the task has them.
    """
    known = {entry.get("id"): entry for entry in classes}
    for one in line.get("predictions", ()):
        entry = known.get(one.get("class_id"))
        if entry is None or score_of(one) < min_score:
            continue
        found = _points(one, entry) if "keypoints" in one else _placed(one, line)
        if found is not None:
            yield {"category_id": entry["id"], **found, "iscrowd": 0, "score": round(score_of(one), 6)}


def _placed(one: Mapping[str, Any], line: Line) -> dict[str, Any] | None:
    corners = box_of(one, line["width"], line["height"])
    if corners is None:
        return None
    x1, y1, x2, y2 = corners
    bbox, area = [x1, y1, round(x2 - x1, 2), round(y2 - y1, 2)], round((x2 - x1) * (y2 - y1), 2)
    if mask := mask_of(one, line):
        return {"bbox": bbox, "area": round(area_of(one, line) or area, 2), "segmentation": mask}
    if rings := rings_of(one):
        return {"bbox": bbox, "area": round(sum(map(_ring_area, rings)), 2) or area, "segmentation": rings}
    return {"bbox": bbox, "area": area, "segmentation": [[x1, y1, x2, y1, x2, y2, x1, y2]]}


def box_of(one: Mapping[str, Any], width: int, height: int) -> list[float] | None:
    """x1 y1 x2 y2 of an answer inside its picture; None where it has none with an area."""
    box = one.get("box")  # x1 y1 x2 y2 in pixels of its picture
    numbers = [finite(value) for value in box] if isinstance(box, list) and len(box) == 4 else []
    if len(numbers) != 4 or None in numbers:
        return None
    x1, y1, x2, y2 = (
        round(min(max(n or 0.0, 0.0), most), 2) for n, most in zip(numbers, (width, height) * 2, strict=True)
    )
    return [x1, y1, x2, y2] if x2 > x1 and y2 > y1 else None


def rest_of(one: Mapping[str, Any], without: Container[str]) -> dict[str, Any]:
    """The fields of an answer but its place and those named."""
    place = one.get("box")
    return {name: value for name, value in one.items() if value is not place and name not in without}


def rings_of(one: Mapping[str, Any]) -> list[list[float]]:
    """Its outlines, x and y in turn; those with less than three points left out."""
    given = one.get("polygon")
    rings = (
        [[finite(value) for value in ring] for ring in given if isinstance(ring, list)]
        if isinstance(given, list)
        else []
    )
    return [[n or 0.0 for n in ring] for ring in rings if len(ring) >= 6 and len(ring) % 2 == 0 and None not in ring]


def mask_of(one: Mapping[str, Any], line: Line) -> dict[str, Any] | None:
    """Its mask as COCO's compressed runs, where it has one of the size of the picture."""
    mask = one.get("mask")
    if not isinstance(mask, dict) or mask.get("size") != [line["height"], line["width"]]:
        return None
    counts = word(mask.get("counts"), 64 << 20)
    return {"size": mask["size"], "counts": counts} if counts else None


def area_of(one: Mapping[str, Any], line: Line) -> float | None:
    """Pixels of a mask whose share of the picture the answer says."""
    share = finite(one.get("share"))
    return None if share is None else share * line["width"] * line["height"]


def _ring_area(ring: Sequence[float]) -> float:
    xs, ys = ring[0::2], ring[1::2]
    turned = zip(xs, ys, [*xs[1:], xs[0]], [*ys[1:], ys[0]], strict=True)
    return abs(sum(x * next_y - next_x * y for x, y, next_x, next_y in turned)) / 2


def points_of(one: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Name → x, y of its points."""
    given = one.get("keypoints")
    rows = [row for row in given if isinstance(row, dict)] if isinstance(given, list) else []
    placed = ((word(row.get("name"), 100), finite(row.get("x")), finite(row.get("y"))) for row in rows)
    return {name: (x, y) for name, x, y in placed if x is not None and y is not None}


def _points(one: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """The points in the order of the class; 2 is seen, 0 not named. The box is what they span."""
    found = points_of(one)
    if not found:
        return None
    order = entry.get("keypoints")
    names = order if isinstance(order, list) and order else list(found)
    flat = [value for name in names for value in ((*found[name], 2) if name in found else (0, 0, 0))]
    xs, ys = [x for x, _ in found.values()], [y for _, y in found.values()]
    x, y, wide, high = min(xs), min(ys), max(max(xs) - min(xs), 1.0), max(max(ys) - min(ys), 1.0)
    corners = [x, y, x + wide, y, x + wide, y + high, x, y + high]
    bbox = [round(value, 2) for value in (x, y, wide, high)]
    return {
        "bbox": bbox, "area": round(wide * high, 2), "segmentation": [corners], "keypoints": flat,
        "num_keypoints": sum(name in found for name in names),
    }  # fmt: skip


def label_of(line: Line, classes: Sequence[Mapping[str, Any]], *, min_score: float = 0.0) -> int | None:
    """The class id of a whole picture: that of its best answer; None where that is not sure enough."""
    known = {entry.get("id") for entry in classes}
    best = max(line.get("predictions", ()), key=score_of, default=None)
    if best is None or score_of(best) < min_score or best.get("class_id") not in known:
        return None
    return int(best["class_id"])
