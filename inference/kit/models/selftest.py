"""Whether a model answers a few pictures here as it did where it was judged: run by packages, on any machine.

Two machines never compute quite alike, least of all with bytes for numbers, so answers are compared within a tolerance:
scores, shares and vectors as they are, places as a share of the picture's longer side. Classes must be the same.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from inference.kit.model_io.requested import Requested

FOLDER, FILE = "selftest", "answers.json"  # of a package
TOLERANCE = 0.01
SIDE = 160  # pixels of a drawn picture
OVERLAP = 0.5  # intersection over union from which two boxes show the same thing
WORST = 1e6  # in place of a difference that is no number
# What differs.
SCORE, BOX, POINT, SHARE, VECTOR, CLASS, MISSING, EXTRA, FORM = (
    "score", "corners", "point", "share", "vector", "class", "missing", "extra", "form",
)  # fmt: skip
KINDS = (SCORE, BOX, POINT, SHARE, VECTOR, CLASS, MISSING, EXTRA, FORM)

Row = Mapping[str, Any]
Predict = Callable[[bytes, Requested], Mapping[str, Any]]


@dataclass(frozen=True)
class Difference:
    """The largest difference of two answers, and of what it is; 0 of a score where they are the same."""

    largest: float = 0.0
    kind: str = SCORE


def drawn(seed: int) -> bytes:
    """Draw a PNG with colored boxes on a gradient, the same for the same seed; it contains no user data."""
    rng = np.random.default_rng(seed)
    down, across = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    pixels = np.stack([255 * across, 255 * down, np.full((SIDE, SIDE), 96.0)], -1)
    for _box in range(6):
        left, top = rng.integers(0, SIDE - 48, 2)
        width, height = rng.integers(16, 48, 2)
        pixels[top : top + height, left : left + width] = rng.integers(0, 256, 3)
    out = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(out, "PNG")
    return out.getvalue()


def check(predict: Predict, folder: Path) -> dict[str, Any]:
    """Compare the predictions of `predict` for the samples in a folder with the expected ones stored there.

    Returns `same`, the number of `samples`, and of the largest difference its `sample` (from 1), `kind` and size
    (`largest`), with the `tolerance`.

    Gives `same`, how many `samples` there are, and of the largest difference its `sample` (from 1), `kind` and size
    (`largest`), with the `tolerance`.

    Raises:
        OSError, ValueError, LookupError: there are no samples, or they cannot be read.
    """
    written = json.loads((folder / FILE).read_bytes())
    tolerance, worst, worst_number = float(written["tolerance"]), Difference(), 1
    for number, sample in enumerate(written["samples"], 1):
        data = (folder / Path(sample["picture"]).name).read_bytes()
        response = json.loads(json.dumps(predict(data, Requested.from_values(sample["asked"]))))
        current = difference(sample["answer"], response, sample["asked"])
        if current.largest > worst.largest:
            worst, worst_number = current, number
    return {
        "same": worst.largest <= tolerance,
        "samples": len(written["samples"]),
        "sample": worst_number,
        "kind": worst.kind,
        "largest": round(worst.largest, 6),
        "tolerance": tolerance,
    }


def difference(expected: Mapping[str, Any], actual: Mapping[str, Any], options: Mapping[str, Any]) -> Difference:
    """Return the largest difference of two responses to one image.

    Args:
        options: options of both requests; predictions below `score_threshold` are in neither.
    """
    try:
        if expected["task"] != actual["task"] or expected["image"] != actual["image"]:
            return Difference(WORST, FORM)
        side = float(max(expected["image"]["width"], expected["image"]["height"], 1))
        first, second = expected["predictions"], actual["predictions"]
        by_box = any(row.get("box") is not None and "mask" not in row for row in (*first, *second))
        differences = _compare_boxes(first, second, options, side) if by_box else _compare_classes(first, second, side)
        return max(differences, key=lambda each: each.largest, default=Difference())
    except (LookupError, TypeError, ValueError, AttributeError):
        return Difference(WORST, FORM)


def _compare_boxes(
    first: Sequence[Row], second: Sequence[Row], options: Mapping[str, Any], side: float
) -> list[Difference]:
    """Compare overlapping rows of one class; a row without a counterpart counts by its distance from the threshold."""
    overlapping = sorted(
        (
            (overlap, i, j)
            for i, a in enumerate(first)
            for j, b in enumerate(second)
            if (overlap := _overlap(a, b)) >= OVERLAP
        ),
        reverse=True,
    )
    pairs = [(i, j) for _overlap_, i, j in overlapping if first[i]["class_id"] == second[j]["class_id"]]
    left, right, differences = set(range(len(first))), set(range(len(second))), list[Difference]()
    for i, j in pairs:
        if i in left and j in right:
            left.discard(i)
            right.discard(j)
            differences += _compare_rows(first[i], second[j], side)
    for own, rows, others, kind in ((left, first, second, MISSING), (right, second, first, EXTRA)):
        lowest = _lowest(others, options)
        for index in own:
            other_class = kind == MISSING and any(i == index and j in right for _overlap_, i, j in overlapping)
            gap = _gap(max(float(rows[index]["score"]), lowest), lowest)
            differences.append(Difference(gap, CLASS if other_class else kind))
    return differences


def _lowest(rows: Sequence[Row], options: Mapping[str, Any]) -> float:
    """Return the score below which a prediction would not have been among these rows."""
    threshold = float(options.get("score_threshold", 0.0))
    if len(rows) < int(options.get("max_detections", WORST)):
        return threshold
    return max(threshold, min(float(row["score"]) for row in rows))


def _compare_classes(first: Sequence[Row], second: Sequence[Row], side: float) -> list[Difference]:
    """Compare rows of the same class; a class that is not named is less certain, or smaller, than all that are."""
    first_by_class, second_by_class = ({row.get("class_id"): row for row in rows} for rows in (first, second))
    differences: list[Difference] = []
    for kind in first_by_class.keys() & second_by_class.keys():
        differences += _compare_rows(first_by_class[kind], second_by_class[kind], side)
    for own, others, what in ((first_by_class, second_by_class, MISSING), (second_by_class, first_by_class, EXTRA)):
        for kind in own.keys() - others.keys():
            size = "share" if "share" in own[kind] else "score"
            lowest = 0.0 if size == "share" else min((float(row[size]) for row in others.values()), default=0.0)
            differences.append(Difference(_gap(max(float(own[kind][size]), lowest), lowest), what))
    if first and second and first[0].get("class_id") != second[0].get("class_id"):
        largest = max((each.largest for each in differences), default=0.0)
        sure = float(first[0]["score"]) if "vector" in first[0] else largest  # neighbours name one class alone
        differences.append(Difference(max(sure, largest), CLASS))
        differences.sort(key=lambda each: each.kind != CLASS)  # of equal ones the first counts
    return differences


def _compare_rows(first: Row, second: Row, side: float) -> list[Difference]:
    """Return the differences of two predictions of one class."""
    differences = []
    if "score" in first and "vector" not in first:
        differences.append(Difference(_gap(first["score"], second["score"]), SCORE))
    if "share" in first:
        differences.append(Difference(_gap(first["share"], second["share"]), SHARE))
    elif first.get("box") is not None:
        gaps = [_gap(a, b) for a, b in zip(first["box"], second["box"], strict=True)]
        differences.append(Difference(max(gaps) / side, BOX))
    if "vector" in first:
        longest = max([1.0, *(abs(value) for value in first["vector"])])
        gaps = [_gap(a, b) for a, b in zip(first["vector"], second["vector"], strict=True)]
        differences.append(Difference(max(gaps, default=0.0) / longest, VECTOR))
    others = _points(second)
    for name, point in _points(first).items():
        other = others[name]
        differences.append(Difference(max(_gap(point[axis], other[axis]) for axis in ("x", "y")) / side, POINT))
        differences.append(Difference(_gap(point["score"], other["score"]), SCORE))
    return differences


def _points(row: Row) -> dict[str, Row]:
    """The named points of an answer: of the list in it whose entries have a place."""
    lists = (value for value in row.values() if isinstance(value, list))
    return {point["name"]: point for points in lists for point in points if isinstance(point, dict) and "x" in point}


def _gap(first: float, second: float) -> float:
    value = abs(float(first) - float(second))
    return value if math.isfinite(value) else WORST


def _overlap(first: Row, second: Row) -> float:
    """Intersection over union of two boxes x1 y1 x2 y2."""
    a, b = first["box"], second["box"]
    width, height = (min(a[2 + axis], b[2 + axis]) - max(a[axis], b[axis]) for axis in (0, 1))
    intersection = max(width, 0.0) * max(height, 0.0)
    union = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)) - intersection
    return float(intersection / union) if union > 0 else 0.0
