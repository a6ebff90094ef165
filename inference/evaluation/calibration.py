"""Whether scores are what they say, and from which score on answers should count if mistakes cost money.

*Reliability*: answers in fifteen bins of equal width by their score; of those with a score of 0.8 eight of ten should
be right. ECE, the expected calibration error, is the mean distance of the two, by the number of answers in each bin
(C. Guo et al., On Calibration of Modern Neural Networks, ICML 2017, arXiv 1706.04599). Of a classifier the most
probable class of each image counts, of a detector each box, right where it finds an object with an overlap of 0.5.

*Cost*: what wrong answers and missed objects cost together at each of the thresholds of an evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.numbers import finite
from inference.evaluation import differences, results
from inference.evaluation.models import Evaluation
from inference.kit.task_kinds import TASKS

BINS = 15
MAX_COST = 1e9


@dataclass(frozen=True)
class Bin:
    """Answers with a score from `low` to `high`: how many, their mean score, and what share of them is right."""

    low: float
    high: float
    count: int
    score: float | None
    right: float | None


@dataclass(frozen=True)
class Reliability:
    """Fifteen bins, the expected calibration error (0..1), and the number of answers."""

    bins: list[Bin]
    ece: float
    answers: int


def for_evaluation(evaluation: Evaluation) -> Reliability | None:
    """Return the reliability of the scores of an evaluation; None for tasks without scores and for older evaluations.

    Raises:
        Invalid: its results cannot be read, or an own script gave figures only.
    """
    results.check_predictions(evaluation)
    return _compute(evaluation.pk, results.stamp(evaluation))


@lru_cache(maxsize=64)
def _compute(number: int, _stamp: tuple[str, int]) -> Reliability | None:
    evaluation = Evaluation.objects.select_related("job").get(pk=number)
    with differences.readable([evaluation]):
        pairs = list(_scored_predictions(evaluation))
    return reliability(np.array([score for score, _is in pairs]), np.array([right for _one, right in pairs], bool))


def reliability(scores: np.ndarray, right: np.ndarray) -> Reliability | None:
    """Compute the reliability from scores within 0..1 and whether each is right; None without predictions."""
    if not len(scores):
        return None
    bin_indices = np.minimum((scores * BINS).astype(int), BINS - 1)
    counts = np.bincount(bin_indices, minlength=BINS)
    sums = np.bincount(bin_indices, scores, BINS)
    hits = np.bincount(bin_indices, right.astype(float), BINS)
    bins = [
        Bin(index / BINS, (index + 1) / BINS, int(count), *((score / count, hit / count) if count else (None, None)))
        for index, (count, score, hit) in enumerate(zip(counts, sums, hits, strict=True))
    ]
    return Reliability(bins, float(np.abs(sums - hits).sum() / len(scores)), len(scores))


def _scored_predictions(evaluation: Evaluation) -> Iterator[tuple[float, bool]]:
    """Yield score and correctness of each prediction that counts."""
    task = TASKS.get(evaluation.task)
    if task is None or task.scored is None:
        return
    for index, entry in enumerate(results.every_image(evaluation)):
        if index >= differences.MAX_IMAGES:
            return
        for score, right in task.scored(entry):
            yield _within(score), right


def _within(score: Any) -> float:
    number = float(score)
    if not 0 <= number <= 1:
        raise ValueError(f"a score of {number}")
    return number


@dataclass(frozen=True)
class Costs:
    """What mistakes cost together at each threshold, and the place of the cheapest; of equals the lowest."""

    thresholds: list[float]
    costs: list[float]
    best: int
    wrong: list[float]
    missed: list[float]

    @property
    def threshold(self) -> float:
        """The cheapest threshold."""
        return self.thresholds[self.best]


def costs(content: Mapping[str, Any], *, wrong: float, missed: float) -> Costs | None:
    """Compute the cost of wrong predictions and missed objects by threshold; None without counts by threshold.

    Raises:
        Invalid: a cost is negative or no number, or both are 0.
    """
    refusals = Refusals()
    for name, value in (("wrong", wrong), ("missed", missed)):
        with refusals:
            if not math.isfinite(value) or not 0 <= value <= MAX_COST:
                raise Invalid(
                    _("A cost must be a number from 0 to %(most)s.") % {"most": f"{MAX_COST:,.0f}"}, field=name
                )
    with refusals:
        if not refusals and not wrong and not missed:
            raise Invalid(_("One of the two costs must be greater than 0."), field="missed")
    refusals.end()
    try:
        thresholds = [float(entry) for entry in content["thresholds"]]
        classes = content["classes"]
        right = np.sum([np.array(entry["tp"], float) for entry in classes], 0)
        false = np.sum([np.array(entry["fp"], float) for entry in classes], 0)
        missed_objects = sum(float(entry["truths"]) for entry in classes) - right
        total = false * wrong + missed_objects * missed
        if not classes or total.shape != (len(thresholds),):
            return None
        return Costs(thresholds, total.tolist(), int(total.argmin()), false.tolist(), missed_objects.tolist())
    except differences.BROKEN:
        return None


def parse_number(text: str) -> float:
    """Parse a number of a form field; NaN for other texts, which all callers refuse."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return math.nan


def choose(evaluation: Evaluation, threshold: float | None) -> None:
    """Store a threshold as the best score of an evaluation; None restores the one with the best F1.

    Raises:
        Invalid: out of range, or this task has no score threshold.
    """
    task = TASKS.get(evaluation.task)
    refusals = Refusals()
    with refusals:
        results.check_predictions(evaluation)
        if task is None or not task.pages.threshold:
            raise Invalid(_("Predictions of this task have no confidence threshold."))
    with refusals:
        if threshold is not None and (finite(threshold) is None or not 0 < threshold < 1):
            raise Invalid(_("Enter a threshold between 0 and 1."), field="threshold")
    refusals.end()
    evaluation.chosen_threshold = threshold
    evaluation.save(update_fields=["chosen_threshold"])
