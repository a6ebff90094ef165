"""True and false positives by score threshold, so that readers can move the threshold afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS = 101
THRESHOLDS = [round(i / (STEPS - 1), 4) for i in range(STEPS)]


def by_threshold(hits: Sequence[tuple[float, bool]]) -> tuple[list[int], list[int]]:
    """True and false positives among answers (score, right) with score ≥ each of THRESHOLDS."""
    right = np.sort([score for score, good in hits if good])
    wrong = np.sort([score for score, good in hits if not good])
    return _at_least(right), _at_least(wrong)


def _at_least(scores: NDArray[Any]) -> list[int]:
    counts: list[int] = (len(scores) - np.searchsorted(scores, THRESHOLDS)).tolist()
    return counts


def rates(tp: float, fp: float, truths: float) -> dict[str, float]:
    """Precision, recall and F1; nothing found or nothing to find count as zero."""
    precision = tp / (tp + fp) if tp + fp else 0.0
    recall = tp / truths if truths else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def mean_rates(classes: Sequence[Mapping[str, Any]], place: int) -> dict[str, float]:
    """Macro mean over the classes that occur, at THRESHOLDS[place]."""
    present = [c for c in classes if c["truths"]]
    per_class = [rates(c["tp"][place], c["fp"][place], c["truths"]) for c in present]
    names = ("precision", "recall", "f1")
    return {n: float(np.mean([one[n] for one in per_class])) if per_class else 0.0 for n in names}


def best_place(classes: Sequence[Mapping[str, Any]]) -> int:
    """Place in THRESHOLDS where the mean F1 is highest; of equals the middle one."""
    values = np.array([mean_rates(classes, place)["f1"] for place in range(STEPS)])
    best = np.flatnonzero(values >= values.max() - 1e-12)
    return int(best[len(best) // 2])
