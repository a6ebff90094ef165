"""Resample images with replacement and score on each draw: the paired bootstrap.

B. Efron, R. Tibshirani, An Introduction to the Bootstrap, 1993, chapters 13 and 16. How often each image is drawn is
multinomial; all models are scored on the same draws, which is what pairs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.evaluation import average_precision
from inference.kit.contracts.served_task import ClassMean, Measure, Ranked, ServedTask

RESAMPLES, AT_ONCE = 2000, 50
CONFIDENCE = 0.95
MAX_CLASSES = 100_000
MAX_CELLS = 5_000_000  # images × classes of a table by image, 24 bytes each
Numbers = NDArray[np.float64]
Entries = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Scored:
    """A metric of some evaluations, on all images [evaluations] and on each draw [resamples, evaluations].

    NaN where no image counts.
    """

    figure: Measure | ClassMean | Ranked
    overall: Numbers
    drawn: Numbers


class Pairs:
    """What stood for what on the images of one evaluation, see `ServedTask.pairs`."""

    def __init__(self, rows: Sequence[tuple[int, int, int, int]], *, images: int, classes: int) -> None:
        """`rows`: places of image, truth and answer, and how often; few classes are kept as a table by image."""
        self.classes = classes
        columns = np.array(rows, np.int64).reshape(-1, 4).T
        self.image, self.truth, self.answer = columns[:3]
        self.count: Numbers = columns[3].astype(float)
        self.by_image: Numbers | None = None
        if images * classes <= MAX_CELLS:
            self.by_image = np.zeros((3, classes, images))
            same = self.truth == self.answer
            np.add.at(self.by_image[0], (self.truth[same], self.image[same]), self.count[same])
            np.add.at(self.by_image[1], (self.truth, self.image), self.count)
            np.add.at(self.by_image[2], (self.answer, self.image), self.count)

    def tables(self, often: Numbers) -> Numbers:
        """Return right, present and predicted [draws, 3, classes]; `often` [draws, images] counts draws of images."""
        if self.by_image is not None:
            flat = self.by_image.reshape(-1, self.by_image.shape[2])
            return (often @ flat.T).reshape(-1, 3, self.classes)
        return np.array([self._table(row) for row in often])

    def _table(self, often: Numbers) -> list[Numbers]:
        weight, same = self.count * often[self.image], self.truth == self.answer
        parts = ((self.truth[same], weight[same]), (self.truth, weight), (self.answer, weight))
        return [np.bincount(places, own, self.classes).astype(float) for places, own in parts]


def score(
    task: ServedTask, entries: Sequence[Entries], *, seed: Sequence[int], resamples: int = RESAMPLES
) -> list[Scored]:
    """Compute all metrics of a task from the entries of each evaluation, whose images are in the same order.

    Args:
        resamples: how often images are drawn; average precisions take as many at most, and fewer of many answers.

    Figures are left out for which entries lack what they take: an older evaluator did not write it yet.
    """
    sums = {measure: parts for measure in task.measures if (parts := _sums(measure, entries)) is not None}
    pairs = _pairs(task, entries)
    means = task.means if pairs else ()
    images = len(entries[0])
    flat = np.concatenate([*sums.values(), np.empty((0, len(entries), images))]).reshape(-1, images)
    drawn_sums = np.empty((resamples, len(flat)))
    drawn_means = np.empty((resamples, len(means), len(entries)))
    for begin, often in _draws(images, seed=seed, count=resamples):
        drawn_sums[begin : begin + AT_ONCE] = often @ flat.T
        if means:
            drawn_means[begin : begin + AT_ONCE] = _means(means, pairs, often)
    by_measure = np.moveaxis(drawn_sums.reshape(resamples, len(sums), 2, len(entries)), 1, 0)
    quotients = [
        Scored(measure, _quotients(own[0].sum(1), own[1].sum(1)), _quotients(drawn[:, 0], drawn[:, 1]))
        for (measure, own), drawn in zip(sums.items(), by_measure, strict=True)
    ]
    overall = _means(means, pairs, np.ones((1, images)))[0] if means else ()
    return [
        *_average_precisions(task, entries, seed, resamples),
        *quotients,
        *(Scored(mean, overall[at], drawn_means[:, at]) for at, mean in enumerate(means)),
    ]


def _average_precisions(
    task: ServedTask, entries: Sequence[Entries], seed: Sequence[int], max_draws: int
) -> list[Scored]:
    """Compute average precisions, with fewer draws; none if the task has none, or entries lack them or are too many."""
    if not task.ranked:
        return []
    try:
        rankings = [average_precision.Ranking(own) for own in entries]
    except KeyError:
        return []
    images, count = len(entries[0]), min(max_draws, average_precision.draws_of(rankings))
    if not count:
        return []
    overall = np.stack([item.precisions(np.ones((1, images)))[0] for item in rankings])
    draws = _draws(images, seed=seed, count=count)
    drawn = np.concatenate([np.stack([item.precisions(often) for item in rankings], 1) for _begin, often in draws])
    return [Scored(item, overall[:, item.levels].mean(1), drawn[:, :, item.levels].mean(2)) for item in task.ranked]


def interval(values: Numbers) -> tuple[float | None, float | None]:
    """The ends of the middle 95 % of values; None where there is none."""
    there = values[np.isfinite(values)]
    if not len(there):
        return None, None
    low, high = np.quantile(there, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _draws(images: int, *, seed: Sequence[int], count: int = RESAMPLES) -> Iterator[tuple[int, Numbers]]:
    """Where each batch begins, and how often each of its draws has each image [at most AT_ONCE, images]."""
    chance = np.random.default_rng(list(seed))
    for begin in range(0, count, AT_ONCE):
        draws = (chance.integers(0, images, images) for _draw in range(min(AT_ONCE, count - begin)))
        yield begin, np.array([np.bincount(draw, minlength=images) for draw in draws], float)


def _sums(measure: Measure, entries: Sequence[Entries]) -> Numbers | None:
    """Return the parts of both sums [2, evaluations, images]; None if entries lack their fields."""
    try:
        return np.array(
            [[[float(part(entry)) for entry in own] for own in entries] for part in (measure.over, measure.under)]
        )
    except KeyError:
        return None


def _pairs(task: ServedTask, entries: Sequence[Entries]) -> list[Pairs]:
    """Return the pairs of each evaluation; none if the task has none, or entries lack them."""
    if task.pairs is None:
        return []
    try:
        rows = [[(at, *pair) for at, entry in enumerate(own) for pair in task.pairs(entry)] for own in entries]
    except KeyError:
        return []
    classes = max((max(truth, answer) + 1 for own in rows for _image, truth, answer, _count in own), default=0)
    if classes > MAX_CLASSES:
        raise ValueError(f"{classes} classes")
    return [Pairs(own, images=len(entries[0]), classes=classes) for own in rows]


def _means(means: Sequence[ClassMean], pairs: Sequence[Pairs], often: Numbers) -> Numbers:
    """Compute each metric of each evaluation [draws, means, evaluations]: its mean over the present classes."""
    values = np.full((len(often), len(means), len(pairs)), np.nan)
    for index, own in enumerate(pairs):
        for draw, (right, present, answered) in enumerate(own.tables(often)):
            shown = present > 0
            if shown.any():
                values[draw, :, index] = [
                    mean.of(right[shown], present[shown], answered[shown]).mean() for mean in means
                ]
    return values


def _quotients(over: Numbers, under: Numbers) -> Numbers:
    return np.divide(over, under, out=np.full(np.shape(over), np.nan), where=np.asarray(under) > 0)
