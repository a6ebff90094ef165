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
    """A PNG with coloured boxes on a gradient, the same for the same seed: nobody's picture."""
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
    """Compare what `predict` says of the samples in a folder with what is written there.

    Gives `same`, how many `samples` there are, and of the largest difference its `sample` (from 1), `kind` and size
    (`largest`), with the `tolerance`.

    Raises:
        OSError, ValueError, LookupError: there are no samples, or they cannot be read.
    """
    written = json.loads((folder / FILE).read_bytes())
    tolerance, worst, place = float(written["tolerance"]), Difference(), 1
    for number, sample in enumerate(written["samples"], 1):
        data = (folder / Path(sample["picture"]).name).read_bytes()
        given = json.loads(json.dumps(predict(data, Requested.from_values(sample["asked"]))))
        found = difference(sample["answer"], given, sample["asked"])
        if found.largest > worst.largest:
            worst, place = found, number
    return {
        "same": worst.largest <= tolerance,
        "samples": len(written["samples"]),
        "sample": place,
        "kind": worst.kind,
        "largest": round(worst.largest, 6),
        "tolerance": tolerance,
    }


def difference(expected: Mapping[str, Any], given: Mapping[str, Any], asked: Mapping[str, Any]) -> Difference:
    """The largest difference of two answers to one picture.

    Args:
        asked: the options of both: what is less sure than `score_threshold` is in none of them.
    """
    try:
        if expected["task"] != given["task"] or expected["image"] != given["image"]:
            return Difference(WORST, FORM)
        side = float(max(expected["image"]["width"], expected["image"]["height"], 1))
        one, two = expected["predictions"], given["predictions"]
        by_place = any(row.get("box") is not None and "mask" not in row for row in (*one, *two))
        found = _of_boxes(one, two, asked, side) if by_place else _of_classes(one, two, side)
        return max(found, key=lambda each: each.largest, default=Difference())
    except (LookupError, TypeError, ValueError, AttributeError):
        return Difference(WORST, FORM)


def _of_boxes(one: Sequence[Row], two: Sequence[Row], asked: Mapping[str, Any], side: float) -> list[Difference]:
    """Rows of one class that overlap are compared; a row without its like tells by how much it is no close call."""
    near = sorted(
        (
            (overlap, i, j)
            for i, a in enumerate(one)
            for j, b in enumerate(two)
            if (overlap := _overlap(a, b)) >= OVERLAP
        ),
        reverse=True,
    )
    pairs = [(i, j) for _overlap_, i, j in near if one[i]["class_id"] == two[j]["class_id"]]
    left, right, found = set(range(len(one))), set(range(len(two))), list[Difference]()
    for i, j in pairs:
        if i in left and j in right:
            left.discard(i)
            right.discard(j)
            found += _of_rows(one[i], two[j], side)
    for own, rows, others, kind in ((left, one, two, MISSING), (right, two, one, EXTRA)):
        lowest = _lowest(others, asked)
        for place in own:
            other_class = kind == MISSING and any(i == place and j in right for _overlap_, i, j in near)
            gap = _gap(max(float(rows[place]["score"]), lowest), lowest)
            found.append(Difference(gap, CLASS if other_class else kind))
    return found


def _lowest(rows: Sequence[Row], asked: Mapping[str, Any]) -> float:
    """The score below which an answer would not have been among these."""
    threshold = float(asked.get("score_threshold", 0.0))
    if len(rows) < int(asked.get("max_detections", WORST)):
        return threshold
    return max(threshold, min(float(row["score"]) for row in rows))


def _of_classes(one: Sequence[Row], two: Sequence[Row], side: float) -> list[Difference]:
    """Rows of the same class are compared; one that is not named is less sure, or smaller, than all that are."""
    mine, theirs = ({row.get("class_id"): row for row in rows} for rows in (one, two))
    found: list[Difference] = []
    for kind in mine.keys() & theirs.keys():
        found += _of_rows(mine[kind], theirs[kind], side)
    for own, others, what in ((mine, theirs, MISSING), (theirs, mine, EXTRA)):
        for kind in own.keys() - others.keys():
            size = "share" if "share" in own[kind] else "score"
            lowest = 0.0 if size == "share" else min((float(row[size]) for row in others.values()), default=0.0)
            found.append(Difference(_gap(max(float(own[kind][size]), lowest), lowest), what))
    if one and two and one[0].get("class_id") != two[0].get("class_id"):
        largest = max((each.largest for each in found), default=0.0)
        sure = float(one[0]["score"]) if "vector" in one[0] else largest  # neighbours name one class alone
        found.append(Difference(max(sure, largest), CLASS))
        found.sort(key=lambda each: each.kind != CLASS)  # of equal ones the first counts
    return found


def _of_rows(one: Row, two: Row, side: float) -> list[Difference]:
    """What differs between two answers of one class."""
    found = []
    if "score" in one and "vector" not in one:
        found.append(Difference(_gap(one["score"], two["score"]), SCORE))
    if "share" in one:
        found.append(Difference(_gap(one["share"], two["share"]), SHARE))
    elif one.get("box") is not None:
        gaps = [_gap(a, b) for a, b in zip(one["box"], two["box"], strict=True)]
        found.append(Difference(max(gaps) / side, BOX))
    if "vector" in one:
        longest = max([1.0, *(abs(value) for value in one["vector"])])
        gaps = [_gap(a, b) for a, b in zip(one["vector"], two["vector"], strict=True)]
        found.append(Difference(max(gaps, default=0.0) / longest, VECTOR))
    others = _points(two)
    for name, point in _points(one).items():
        other = others[name]
        found.append(Difference(max(_gap(point[axis], other[axis]) for axis in ("x", "y")) / side, POINT))
        found.append(Difference(_gap(point["score"], other["score"]), SCORE))
    return found


def _points(row: Row) -> dict[str, Row]:
    """The named points of an answer: of the list in it whose entries have a place."""
    lists = (value for value in row.values() if isinstance(value, list))
    return {point["name"]: point for points in lists for point in points if isinstance(point, dict) and "x" in point}


def _gap(one: float, two: float) -> float:
    value = abs(float(one) - float(two))
    return value if math.isfinite(value) else WORST


def _overlap(one: Row, two: Row) -> float:
    """Intersection over union of two boxes x1 y1 x2 y2."""
    a, b = one["box"], two["box"]
    width, height = (min(a[2 + axis], b[2 + axis]) - max(a[axis], b[axis]) for axis in (0, 1))
    inside = max(width, 0.0) * max(height, 0.0)
    whole = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)) - inside
    return float(inside / whole) if whole > 0 else 0.0
