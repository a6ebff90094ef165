"""Average precisions on resampled images: COCO's, with each image as often as it was drawn.

An image that was drawn twice has its objects and its answers twice. As equal answers stand beside each other in the
order of scores, counting them with a weight gives the precision at every recall that copies would give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.kit.task_kinds import matching

RECALLS = np.linspace(0, 1, 101)
MAX_DRAWS, MIN_DRAWS = 500, 100
MAX_PREDICTIONS = 500_000
MAX_CELLS = 50_000_000  # draws × answers of one evaluation: some seconds
AT_ONCE = 2_000_000  # of them, held in memory at a time: some 100 MiB
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class _Class:
    """The answers of one class, best first: whose image, and at which levels right and counted [answers, levels]."""

    image: NDArray[np.int64]
    right: NDArray[np.bool_]
    counted: NDArray[np.bool_]
    truths: Numbers  # by image


class Ranking:
    """The answers of one evaluation, by class, whose images stand in a known order."""

    def __init__(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Take what `matching.of_image` gives.

        Raises:
            KeyError: an older evaluator did not keep it.
        """
        parts = [matching.of_image(entry) for entry in entries]
        rows = np.concatenate([own for own, _truths in parts] or [np.zeros((0, 4), np.float32)])
        image = np.repeat(np.arange(len(parts)), [len(own) for own, _truths in parts])
        kinds = {int(kind) for _own, truths in parts for kind in truths}
        self.classes = [self._class(kind, rows, image, parts) for kind in sorted(kinds)]
        self.answers = len(rows)

    def _class(self, kind: int, rows: NDArray[np.float32], image: NDArray[np.int64], parts: Sequence[Any]) -> _Class:
        own = np.flatnonzero(rows[:, 0] == kind)
        own = own[np.argsort(-rows[own, 1], kind="stable")]
        truths = np.array([truths.get(str(kind), 0) for _own, truths in parts], float)
        return _Class(image[own], matching.bits(rows[own, 2]), ~matching.bits(rows[own, 3]), truths)

    def precisions(self, often: Numbers) -> Numbers:
        """Average precision at each level [draws, levels], where images count as `often` [draws, images] as drawn.

        The mean over the classes of which there is an object; NaN where there is none at all.
        """
        step = max(1, AT_ONCE // max(self.answers, 1))
        return np.concatenate([self._resample(often[begin : begin + step]) for begin in range(0, len(often), step)])

    def _resample(self, often: Numbers) -> Numbers:
        precisions = np.array([_precisions(ranked_class, often) for ranked_class in self.classes]).reshape(
            -1, len(often), len(matching.LEVELS)
        )
        is_present = np.isfinite(precisions)
        total = np.where(is_present, precisions, 0.0).sum(0)
        return np.divide(total, is_present.sum(0), out=np.full(total.shape, np.nan), where=is_present.sum(0) > 0)


def _precisions(ranked_class: _Class, often: Numbers) -> Numbers:
    """Return the average precisions of a class [draws, levels]; NaN in draws without an object of it."""
    objects = often @ ranked_class.truths
    weight = often.astype(np.float32)[:, ranked_class.image]
    precisions = np.zeros((len(often), len(matching.LEVELS)))
    total = np.cumsum(weight, 1)
    for level in range(len(matching.LEVELS)):
        right, counted = ranked_class.right[:, level], ranked_class.counted[:, level]
        places = np.flatnonzero(right)
        if not len(places):
            continue
        passed = total if counted.all() else np.cumsum(weight * counted, 1)
        hits = np.cumsum(weight[:, places], 1)
        answers = passed[:, places]
        precision = np.divide(hits, answers, out=np.zeros(hits.shape), where=answers > 0)
        best = np.maximum.accumulate(precision[:, ::-1], 1)[:, ::-1]
        recall = np.divide(hits, objects[:, None], out=np.zeros(hits.shape), where=objects[:, None] > 0)
        for draw in range(len(often)):
            reached = np.searchsorted(recall[draw], RECALLS, side="left")
            precisions[draw, level] = best[draw, reached[reached < len(places)]].sum() / len(RECALLS)
    precisions[objects <= 0] = np.nan
    return precisions


def draws_of(rankings: Sequence[Ranking]) -> int:
    """Return the number of draws for so many predictions; 0 if even a few would take too long."""
    largest = max((ranking.answers for ranking in rankings), default=0)
    if largest > MAX_PREDICTIONS:
        return 0
    return max(MIN_DRAWS, min(MAX_DRAWS, MAX_CELLS // max(largest, 1)))
