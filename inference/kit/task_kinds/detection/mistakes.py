"""Of which kind the mistakes of a detector are, and what it would be worth to mend those of one kind.

After D. Bolya et al., TIDE: A General Toolbox for Identifying Object Detection Errors, 2020 (arXiv 2008.08115). An
answer is right that finds an object of its class with an overlap of 0.5; each that does not is of exactly one kind:

- location: it overlaps with an object of its class, from 0.1 on but below 0.5;
- class: it finds an object (0.5) of another class;
- duplicate: it finds an object of its class that a surer answer has found;
- background: it overlaps with nothing, below 0.1;
- both: anything else, neither the class nor the place is right.

An object is missed where no answer finds it and none of the first two kinds is about it. What mending is worth is how
much the average precision at an overlap of 0.5 rises if an oracle mends all mistakes of one kind and no others: the
answer for class and location becomes right, or goes where the object is found already; other answers go; missed
objects are not counted. The gains do not add up to what is missing to 1: one mistake may hide another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.kit.samples.ground_truth import Box
from inference.kit.task_kinds.matching import boxes_overlap
from inference.kit.task_kinds.mistaken import BACKGROUND, BOTH, CLASS, DUPLICATE, KINDS, LOCATION, MISSED

RIGHT, PASSED = "right", "passed"  # passed: it is in a crowd and does not count
FOUND, NEAR = 0.5, 0.1  # overlaps
MENDED = {CLASS, LOCATION}
MAX_PREDICTIONS = 100  # answers of an image and class, as COCO counts them
RECALLS = np.linspace(0, 1, 101)
Answers = Sequence[Sequence[float]]  # class id, score, x1, y1, x2, y2; best first
Forgiven = Callable[[Sequence[float], Sequence[Box]], bool]


@dataclass(frozen=True)
class Judged:
    """One answer, or one object that is missed (`score` 0); `truth` is the place of the object it is about."""

    kind: str
    class_id: int
    score: float
    corners: Sequence[float]
    truth: int | None = None
    truth_class: int | None = None


def judge_image(answers: Answers, truths: Sequence[Box], forgiven: Forgiven) -> list[Judged]:
    """Return all predictions of an image, best first, then the missed objects. Crowds are not objects."""
    objects = [row for row in truths if not row.crowd]
    crowds = [row for row in truths if row.crowd]
    counted = list(_counted(answers))
    table = _Table(counted, objects)
    taken = table.pairs()
    matched: set[int | None] = set(taken.values())
    judged = []
    for index, row in enumerate(counted):
        if index in taken:
            judged.append(_to_judged(row, RIGHT, taken[index], objects))
        elif crowds and forgiven(row, [crowd for crowd in crowds if crowd.class_id == row[0]]):
            judged.append(_to_judged(row, PASSED, None, objects))
        else:
            judged.append(_to_judged(row, *table.kind(index), objects))
    return judged + _missed(objects, matched | {row.truth for row in judged if row.kind in MENDED})


def _counted(answers: Answers) -> Iterator[Sequence[float]]:
    """Yield the predictions that count: the best of each class."""
    number: dict[float, int] = {}
    for answer in sorted(answers, key=lambda answer: -answer[1]):
        number[answer[0]] = number.get(answer[0], 0) + 1
        if number[answer[0]] <= MAX_PREDICTIONS:
            yield answer


class _Table:
    """How much each answer of an image overlaps with each object, of its class and of others."""

    def __init__(self, answers: Answers, objects: Sequence[Box]) -> None:
        corners = np.array([row[2:6] for row in answers], float).reshape(-1, 4)
        truth_corners = np.array([row.corners for row in objects], float).reshape(-1, 4)
        table = boxes_overlap(corners, truth_corners, np.zeros(len(truth_corners), bool))
        classes = np.array([row.class_id for row in objects], int)
        same = np.array([int(row[0]) for row in answers], int)[:, None] == classes[None]
        self.own, self.other = np.where(same, table, -1.0), np.where(same, -1.0, table)
        self.best_own = self.own.max(1, initial=-1.0).tolist()
        self.best_other = self.other.max(1, initial=-1.0).tolist()

    def pairs(self) -> dict[int, int]:
        """Return index → object of each right prediction: best score first, highest IoU with a free object."""
        pairs: dict[int, int] = {}
        free = np.ones(self.own.shape[1], bool)
        for index, best in enumerate(self.best_own):
            if best < FOUND:
                continue
            row = np.where(free, self.own[index], -1.0)
            if row.max() >= FOUND:
                last = len(row) - 1 - int(row[::-1].argmax())  # of equal ones the last, as COCO has it
                pairs[index], free[last] = last, False
        return pairs

    def kind(self, index: int) -> tuple[str, int | None]:
        """Return the kind of a wrong prediction, and the object that it concerns."""
        own, other = self.best_own[index], self.best_other[index]
        if max(own, other) < NEAR:
            return BACKGROUND, None
        if NEAR <= own < FOUND:
            return LOCATION, int(self.own[index].argmax())
        if other >= FOUND:
            return CLASS, int(self.other[index].argmax())
        if own >= FOUND:  # a surer answer has it
            return DUPLICATE, int(self.own[index].argmax())
        return BOTH, None


def _to_judged(answer: Sequence[float], kind: str, truth: int | None, objects: Sequence[Box]) -> Judged:
    truth_class = None if truth is None else objects[truth].class_id
    return Judged(kind, int(answer[0]), float(answer[1]), answer[2:6], truth, truth_class)


def gains(images: Sequence[Sequence[Judged]], objects: dict[int, int]) -> tuple[float | None, dict[str, float]]:
    """Return the average precision at 0.5, and how much it rises where mistakes of each kind are corrected.

    Args:
        objects: how many there are of each class.
    """
    rows = [
        (judged, (image, judged.truth)) for image, own in enumerate(images) for judged in own if judged.kind in _INDICES
    ]
    rows.sort(key=lambda pair: -pair[0].score)
    kinds = np.array([_INDICES[judged.kind] for judged, _truth in rows], int)
    classes = np.array([judged.class_id for judged, _truth in rows], int)
    right = kinds == _INDICES[RIGHT]
    now = _precision(classes, right, objects)
    if now is None:
        return None, {}
    meant, correctable = _correctable(rows)
    missed = Counter(judged.class_id for own in images for judged in own if judged.kind == MISSED)
    gained = {}
    for kind in KINDS:
        corrected = kinds == _INDICES.get(kind, -1)
        selected = ~corrected | correctable
        remaining = {number: count - missed[number] * (kind == MISSED) for number, count in objects.items()}
        after = _precision(np.where(corrected, meant, classes)[selected], (right | corrected)[selected], remaining)
        gained[kind] = 0.0 if after is None else max(0.0, after - now)
    return now, gained


_INDICES = {kind: index for index, kind in enumerate((RIGHT, CLASS, LOCATION, BOTH, DUPLICATE, BACKGROUND))}


def _correctable(rows: Sequence[tuple[Judged, Any]]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the class that an oracle gives each prediction, and whether that makes it right.

    Of several answers that an oracle would give one object only the surest becomes right, and none where it is found.
    """
    matched = {truth for judged, truth in rows if judged.kind == RIGHT}
    matched_by_kind: dict[str, set[Any]] = {kind: set(matched) for kind in MENDED}
    classes, correctable = np.zeros(len(rows), int), np.zeros(len(rows), bool)
    for index, (judged, truth) in enumerate(rows):
        if judged.kind in MENDED and judged.truth_class is not None and truth not in matched_by_kind[judged.kind]:
            matched_by_kind[judged.kind].add(truth)
            classes[index], correctable[index] = judged.truth_class, True
    return classes, correctable


def _precision(classes: NDArray[Any], right: NDArray[np.bool_], objects: dict[int, int]) -> float | None:
    """Mean over the classes that are there of COCO's average precision at 101 recalls; answers best first."""
    order = np.argsort(classes, kind="stable")
    sorted_classes, sorted_right = classes[order], right[order]
    values = []
    for kind, count in objects.items():
        if count > 0:
            begin, end = np.searchsorted(sorted_classes, [kind, kind + 1])
            values.append(_of_class(sorted_right[begin:end], count))
    return float(np.mean(values)) if values else None


def _of_class(right: NDArray[np.bool_], objects: int) -> float:
    hits = np.cumsum(right)
    precision = hits / np.arange(1, len(right) + 1)
    best = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
    return float(best[np.searchsorted(hits / objects, RECALLS - 1e-12, side="left")].mean())


def from_score(judged: Sequence[Judged], truths: Sequence[Box], threshold: float) -> list[Judged]:
    """Return what `judge_image` returns for the predictions from a score on; lower scores do not affect higher ones."""
    certain = [item for item in judged if item.kind != MISSED and item.score >= threshold]
    covered = {item.truth for item in certain if item.kind == RIGHT or item.kind in MENDED}
    return certain + _missed([item for item in truths if not item.crowd], covered)


def _missed(objects: Sequence[Box], covered: set[int | None]) -> list[Judged]:
    return [
        Judged(MISSED, box.class_id, 0.0, box.corners, index, box.class_id)
        for index, box in enumerate(objects)
        if index not in covered
    ]


def summarize(images: Sequence[Sequence[Judged]], certain: Sequence[Sequence[Judged]], objects: dict[int, int],
         threshold: float) -> dict[str, Any]:  # fmt: skip
    """Return the entry of evaluation.json: counts of `certain` predictions (from the threshold on), gains over all."""
    now, gained = gains(images, objects)
    kinds = {
        kind: {
            "count": sum(judged.kind == kind for own in certain for judged in own),
            "images": sum(any(judged.kind == kind for judged in own) for own in certain),
            "gain": gained.get(kind),
        }
        for kind in KINDS
    }
    return {"threshold": threshold, "ap50": now, "kinds": kinds}


def to_rows(judged: Sequence[Judged]) -> list[list[Any]]:
    """The mistakes of an image as stored in its entry: kind, class, score, corners, class of the object or None."""
    wrong = [item for item in judged if item.kind in KINDS]
    return [
        [
            item.kind,
            item.class_id,
            round(item.score, 6),
            *(round(float(side), 2) for side in item.corners),
            item.truth_class,
        ]
        for item in wrong[:MAX_PREDICTIONS]
    ]
