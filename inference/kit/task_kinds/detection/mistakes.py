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

RIGHT, PASSED = "right", "passed"  # passed: it lies in a crowd, and does not count
FOUND, NEAR = 0.5, 0.1  # overlaps
MENDED = {CLASS, LOCATION}
MOST = 100  # answers of an image and class, as COCO counts them
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


def of_image(answers: Answers, truths: Sequence[Box], forgiven: Forgiven) -> list[Judged]:
    """All answers of an image, best first, then the objects that are missed. Crowds are no objects."""
    objects = [one for one in truths if not one.crowd]
    crowds = [one for one in truths if one.crowd]
    kept = list(_counted(answers))
    table = _Table(kept, objects)
    taken = table.taken()
    found: set[int | None] = set(taken.values())
    judged = []
    for place, one in enumerate(kept):
        if place in taken:
            judged.append(_about(one, RIGHT, taken[place], objects))
        elif crowds and forgiven(one, [crowd for crowd in crowds if crowd.class_id == one[0]]):
            judged.append(_about(one, PASSED, None, objects))
        else:
            judged.append(_about(one, *table.kind(place), objects))
    return judged + _missed(objects, found | {one.truth for one in judged if one.kind in MENDED})


def _counted(answers: Answers) -> Iterator[Sequence[float]]:
    """Those that count: the best of each class."""
    number: dict[float, int] = {}
    for one in sorted(answers, key=lambda one: -one[1]):
        number[one[0]] = number.get(one[0], 0) + 1
        if number[one[0]] <= MOST:
            yield one


class _Table:
    """How much each answer of an image overlaps with each object, of its class and of others."""

    def __init__(self, answers: Answers, objects: Sequence[Box]) -> None:
        corners = np.array([one[2:6] for one in answers], float).reshape(-1, 4)
        there = np.array([one.corners for one in objects], float).reshape(-1, 4)
        table = boxes_overlap(corners, there, np.zeros(len(there), bool))
        classes = np.array([one.class_id for one in objects], int)
        same = np.array([int(one[0]) for one in answers], int)[:, None] == classes[None]
        self.own, self.other = np.where(same, table, -1.0), np.where(same, -1.0, table)
        self.best_own = self.own.max(1, initial=-1.0).tolist()
        self.best_other = self.other.max(1, initial=-1.0).tolist()

    def taken(self) -> dict[int, int]:
        """The place of each right answer and of its object: the surest first, the free one it overlaps with most."""
        taken: dict[int, int] = {}
        free = np.ones(self.own.shape[1], bool)
        for place, best in enumerate(self.best_own):
            if best < FOUND:
                continue
            row = np.where(free, self.own[place], -1.0)
            if row.max() >= FOUND:
                last = len(row) - 1 - int(row[::-1].argmax())  # of equal ones the last, as COCO has it
                taken[place], free[last] = last, False
        return taken

    def kind(self, place: int) -> tuple[str, int | None]:
        """The kind of a wrong answer, and the object it is about."""
        own, other = self.best_own[place], self.best_other[place]
        if max(own, other) < NEAR:
            return BACKGROUND, None
        if NEAR <= own < FOUND:
            return LOCATION, int(self.own[place].argmax())
        if other >= FOUND:
            return CLASS, int(self.other[place].argmax())
        if own >= FOUND:  # a surer answer has it
            return DUPLICATE, int(self.own[place].argmax())
        return BOTH, None


def _about(one: Sequence[float], kind: str, truth: int | None, objects: Sequence[Box]) -> Judged:
    truth_class = None if truth is None else objects[truth].class_id
    return Judged(kind, int(one[0]), float(one[1]), one[2:6], truth, truth_class)


def gains(images: Sequence[Sequence[Judged]], objects: dict[int, int]) -> tuple[float | None, dict[str, float]]:
    """The average precision at 0.5 as it is, and how much it rises where mistakes of each kind are mended.

    Args:
        objects: how many there are of each class.
    """
    every = [(one, (place, one.truth)) for place, own in enumerate(images) for one in own if one.kind in _PLACES]
    every.sort(key=lambda pair: -pair[0].score)
    kinds = np.array([_PLACES[one.kind] for one, _truth in every], int)
    classes = np.array([one.class_id for one, _truth in every], int)
    right = kinds == _PLACES[RIGHT]
    now = _precision(classes, right, objects)
    if now is None:
        return None, {}
    meant, mendable = _mendable(every)
    missed = Counter(one.class_id for own in images for one in own if one.kind == MISSED)
    gained = {}
    for kind in KINDS:
        mended = kinds == _PLACES.get(kind, -1)
        kept = ~mended | mendable
        left = {number: count - missed[number] * (kind == MISSED) for number, count in objects.items()}
        then = _precision(np.where(mended, meant, classes)[kept], (right | mended)[kept], left)
        gained[kind] = 0.0 if then is None else max(0.0, then - now)
    return now, gained


_PLACES = {kind: place for place, kind in enumerate((RIGHT, CLASS, LOCATION, BOTH, DUPLICATE, BACKGROUND))}


def _mendable(every: Sequence[tuple[Judged, Any]]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The class that an oracle gives each answer, and whether that makes it right.

    Of several answers that an oracle would give one object only the surest becomes right, and none where it is found.
    """
    found = {truth for one, truth in every if one.kind == RIGHT}
    again: dict[str, set[Any]] = {kind: set(found) for kind in MENDED}
    meant, mendable = np.zeros(len(every), int), np.zeros(len(every), bool)
    for place, (one, truth) in enumerate(every):
        if one.kind in MENDED and one.truth_class is not None and truth not in again[one.kind]:
            again[one.kind].add(truth)
            meant[place], mendable[place] = one.truth_class, True
    return meant, mendable


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
    """What `of_image` says of the answers from a score on: a surer answer is judged without those that follow it."""
    certain = [one for one in judged if one.kind != MISSED and one.score >= threshold]
    covered = {one.truth for one in certain if one.kind == RIGHT or one.kind in MENDED}
    return certain + _missed([one for one in truths if not one.crowd], covered)


def _missed(objects: Sequence[Box], covered: set[int | None]) -> list[Judged]:
    return [
        Judged(MISSED, one.class_id, 0.0, one.corners, place, one.class_id)
        for place, one in enumerate(objects)
        if place not in covered
    ]


def told(images: Sequence[Sequence[Judged]], certain: Sequence[Sequence[Judged]], objects: dict[int, int],
         threshold: float) -> dict[str, Any]:  # fmt: skip
    """What evaluation.json says: counts of `certain` answers (from the threshold on), gains over all of them."""
    now, gained = gains(images, objects)
    kinds = {
        kind: {
            "count": sum(one.kind == kind for own in certain for one in own),
            "images": sum(any(one.kind == kind for one in own) for own in certain),
            "gain": gained.get(kind),
        }
        for kind in KINDS
    }
    return {"threshold": threshold, "ap50": now, "kinds": kinds}


def drawn(judged: Sequence[Judged]) -> list[list[Any]]:
    """The mistakes of an image as its entry keeps them: kind, class, score, corners, class of the object or None."""
    wrong = [one for one in judged if one.kind in KINDS]
    return [
        [one.kind, one.class_id, round(one.score, 6), *(round(float(side), 2) for side in one.corners), one.truth_class]
        for one in wrong[:MOST]
    ]
