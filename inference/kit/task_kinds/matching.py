"""Which answers find an object, at each of COCO's ten overlaps: what an average precision is made of, image by image.

The rule is that of COCO's evaluation (pycocotools' COCOeval.evaluateImg, area "all", 100 answers an image): the surest
answer first, each takes the object of its class with which it overlaps most among those that are free; what overlaps
only with a crowd is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = np.linspace(0.5, 0.95, 10)
MAX_PREDICTIONS = 100  # answers of an image and class
Floats = NDArray[np.float64]
#: Overlaps [answers, truths] of some answers and truths by their places, and which truths are crowds.
Overlaps = Callable[[Sequence[int], Sequence[int]], Floats]


def ranked(
    answers: Sequence[tuple[int, float]], truths: Sequence[tuple[int, bool]], overlaps: Overlaps
) -> dict[str, Any]:
    """What an image adds to average precisions: `ranked` and `truths` of its entry.

    Args:
        answers: class and score, best first.
        truths: class, and whether it is a crowd.
        overlaps: of answers and truths of one class, by their places; with a crowd as a share of the answer.

    Returns:
        `ranked`: rows of class, score, at which levels it is right and at which it is not counted (bits, the lowest
        level first); `truths`: how many objects there are of each class.
    """
    rows: list[list[float]] = []
    for kind in sorted({kind for kind, _score in answers}):
        own = [index for index, (class_id, _score) in enumerate(answers) if class_id == kind][:MAX_PREDICTIONS]
        candidates = [index for index, (class_id, _crowd) in enumerate(truths) if class_id == kind]
        crowd = np.array([truths[index][1] for index in candidates], bool)
        table = overlaps(own, candidates) if candidates else np.zeros((len(own), 0))
        right, passed = matched(table, crowd)
        rows += [[kind, answers[index][1], int(r), int(p)] for index, r, p in zip(own, right, passed, strict=True)]
    count: dict[str, int] = {}
    for kind, is_crowd in truths:
        if not is_crowd:
            count[str(kind)] = count.get(str(kind), 0) + 1
    return {"ranked": rows, "truths": count}


def matched(table: Floats, crowd: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """At which levels each answer is right, and at which it is not counted, as bits.

    Args:
        table: overlaps [answers, truths] of one class, the surest answer first.
    """
    right, passed = np.zeros(len(table), np.int64), np.zeros(len(table), np.int64)
    near = np.flatnonzero(table.max(1, initial=0.0) >= LEVELS[0])
    last = table.shape[1] - 1
    for bit, level in enumerate(LEVELS):
        free = ~crowd
        for answer in near:
            row = np.where(free, table[answer], -1.0)
            best = last - int(row[::-1].argmax())  # of equal ones the last, as there
            if row[best] >= min(level, 1 - 1e-10):
                free[best] = False
                right[answer] |= 1 << bit
            elif crowd.any() and table[answer][crowd].max() >= level:
                passed[answer] |= 1 << bit
    return right, passed


def bits(rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Bits as a table [rows, levels]."""
    return (rows.astype(np.int64)[:, None] >> np.arange(len(LEVELS))) & 1 == 1


def boxes_overlap(answers: Floats, truths: Floats, crowd: NDArray[np.bool_]) -> Floats:
    """Overlaps [n, m] of boxes x1 y1 x2 y2; with crowds the shared area over that of the answer."""
    low = np.maximum(answers[:, None, :2], truths[None, :, :2])
    high = np.minimum(answers[:, None, 2:], truths[None, :, 2:])
    shared = (high - low).clip(0).prod(2)
    own = (answers[:, 2:] - answers[:, :2]).prod(1)[:, None]
    union = np.where(crowd[None], own, own + (truths[:, 2:] - truths[:, :2]).prod(1)[None] - shared)
    return np.asarray(shared / np.maximum(union, 1e-12), np.float64)


def of_image(entry: Mapping[str, Any]) -> tuple[NDArray[np.float32], Mapping[str, int]]:
    """Rows and numbers of truths of an entry, small in memory.

    Raises:
        KeyError: an older evaluator did not keep them.
    """
    return np.array(entry["ranked"], np.float32).reshape(-1, 4), entry["truths"]
