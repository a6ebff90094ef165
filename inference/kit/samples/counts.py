"""True and false positives by score threshold, so that readers can move the threshold afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS = 101
THRESHOLDS = [round(i / (STEPS - 1), 4) for i in range(STEPS)]
RECALLS = [round(i / 100, 2) for i in range(101)]


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


def mean_rates(classes: Sequence[Mapping[str, Any]], index: int) -> dict[str, float]:
    """Macro mean over the classes that occur, at THRESHOLDS[index]; precision over the classes that are predicted."""
    present = [c for c in classes if c["truths"]]
    answered = [c for c in present if c["tp"][index] + c["fp"][index]]

    def mean(name: str, among: Sequence[Mapping[str, Any]]) -> float:
        values = [rates(c["tp"][index], c["fp"][index], c["truths"])[name] for c in among]
        return float(np.mean(values)) if values else 0.0

    return {"precision": mean("precision", answered), "recall": mean("recall", present), "f1": mean("f1", present)}


def best_index(classes: Sequence[Mapping[str, Any]]) -> int:
    """Return the index in THRESHOLDS with the highest mean F1; the middle one of equals."""
    values = np.array([mean_rates(classes, index)["f1"] for index in range(STEPS)])
    best = np.flatnonzero(values >= values.max() - 1e-12)
    return int(best[len(best) // 2])


def precision_recall(there: NDArray[np.bool_], scores: NDArray[Any]) -> dict[str, Any]:
    """Average precision of one class over images [N] ("ap") and its PR curve at RECALLS ("pr"); None without any.

    Average precision is the sum over the different scores of precision times the step of recall, not interpolated; the
    curve has at each recall the best precision of all thresholds with at least that recall.
    """
    if not there.any():
        return {"ap": None, "pr": None}
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, True)  # of images with one score all are answered or none
    right = np.cumsum(there[order])[last]
    precision, recall = right / (np.flatnonzero(last) + 1), right / there.sum()
    best = np.maximum.accumulate(precision[::-1])[::-1]
    curve = best[np.searchsorted(recall, np.array(RECALLS) - 1e-9)]
    return {"ap": float((np.diff(recall, prepend=0) * precision).sum()), "pr": curve.round(4).tolist()}
