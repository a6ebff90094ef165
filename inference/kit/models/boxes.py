"""Join the boxes that several detectors found on one picture: by weighted fusion, or by suppression of the union.

Source of the fusion: Solovyev, Wang, Gabruseva (2019): Weighted boxes fusion: ensembling boxes from different object
detection models, arXiv 1910.13302, section 3. Models may be weighted, which the paper leaves open: each box counts as
often as the weight of its model says, so that equal weights are the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inference.kit.model_io.decode import suppress

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Boxes:
    """Boxes of one picture: corners [n, 4] as x1 y1 x2 y2, scores [n], classes [n]."""

    corners: Values
    scores: Values
    classes: NDArray[np.int64]


def fused(detections: Sequence[Boxes], weights: Sequence[float], *, iou: float) -> Boxes:
    """Weighted boxes fusion: boxes of one class that overlap by more than `iou` become one, their weighted mean.

    A box weighs its score times the weight of its model. The score of a fused box is the mean of the scores of its
    boxes, times the share of the models' weights that found it (at most 1).
    """
    every, importance = _together(detections, weights)
    corners, scores, classes = [], [], []
    for kind in np.unique(every.classes):
        own = np.flatnonzero(every.classes == kind)
        clusters = _of_class(every.corners[own], every.scores[own], importance[own], iou)
        reach = np.minimum(clusters[:, 5] / sum(weights), 1.0)
        corners.append(clusters[:, :4])
        scores.append(clusters[:, 4] * reach)
        classes.append(np.full(len(clusters), kind, np.int64))
    return _sorted(corners, scores, classes)


def _of_class(corners: Values, scores: Values, importance: Values, iou: float) -> Values:
    """Clusters of the boxes of one class as rows x1 y1 x2 y2, mean score, sum of the weights of their models."""
    order = np.argsort(-scores * importance, kind="stable")
    centres = np.empty((len(order), 4))
    sums = np.zeros((len(order), 6))  # of each cluster: score × weight × corners, score × weight, weight
    count = 0
    for index in order:
        box, box_weight = corners[index], scores[index] * importance[index]
        near = _overlaps(box, centres[:count])
        which = int(near.argmax()) if count else -1
        if which < 0 or near[which] <= iou:
            which, count = count, count + 1
        sums[which, :4] += box_weight * box
        sums[which, 4] += box_weight
        sums[which, 5] += importance[index]
        centres[which] = sums[which, :4] / max(sums[which, 4], 1e-12)
    used = sums[:count]
    return np.column_stack([centres[:count], used[:, 4] / np.maximum(used[:, 5], 1e-12), used[:, 5]])


def suppressed(detections: Sequence[Boxes], weights: Sequence[float], *, iou: float) -> Boxes:
    """The union of all boxes; of boxes of a class that overlap by more than `iou` the best one remains.

    Scores are lowered by what the weight of their model is less than the highest.
    """
    every, importance = _together(detections, weights)
    lowered = every.scores * importance / max(weights)
    corners, scores, classes = [], [], []
    for kind in np.unique(every.classes):
        own = np.flatnonzero(every.classes == kind)
        own = own[np.argsort(-lowered[own], kind="stable")]
        own = own[suppress(np.asarray(every.corners[own], np.float32), iou, limit=len(own))]
        corners.append(every.corners[own])
        scores.append(lowered[own])
        classes.append(every.classes[own])
    return _sorted(corners, scores, classes)


def _together(detections: Sequence[Boxes], weights: Sequence[float]) -> tuple[Boxes, Values]:
    """Concatenate the boxes of all models, and return the weight of the model of each."""
    corners = np.concatenate([boxes.corners.reshape(-1, 4) for boxes in detections])
    scores, classes = (
        np.concatenate([boxes.scores for boxes in detections]),
        np.concatenate([boxes.classes for boxes in detections]),
    )
    return Boxes(corners, scores, classes), np.repeat(weights, [len(boxes.scores) for boxes in detections]).astype(
        float
    )


def _sorted(corners: Sequence[Values], scores: Sequence[Values], classes: Sequence[NDArray[np.int64]]) -> Boxes:
    if not scores:
        return Boxes(np.zeros((0, 4)), np.zeros(0), np.zeros(0, np.int64))
    every = Boxes(np.concatenate(corners), np.concatenate(scores), np.concatenate(classes))
    best = np.argsort(-every.scores, kind="stable")
    return Boxes(every.corners[best], every.scores[best], every.classes[best])


def _overlaps(box: Values, others: Values) -> Values:
    """Intersection over union of a box [4] with each of others [n, 4]."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    shared = (high - low).clip(0).prod(1)
    areas = (box[2] - box[0]) * (box[3] - box[1]) + (others[:, 2:] - others[:, :2]).prod(1)
    return np.asarray(shared / np.maximum(areas - shared, 1e-12), np.float64)
