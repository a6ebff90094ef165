"""What all layouts of detectors' outputs are read with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inference.kit.contracts.served_task import Arrays
from inference.kit.model_io.spec import ModelSpec

Floats = NDArray[np.float32]


def values(spec: ModelSpec, outputs: Arrays, row: int, roles: tuple[str, ...]) -> list[Floats]:
    """The tensors of some roles for one picture of a batch."""
    return [np.asarray(outputs[spec.outputs[role]][row], np.float32) for role in roles]


def logistic(logits: Floats) -> Floats:
    """The logistic function, without an overflow."""
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -80, 80))), np.float32)


def corners(boxes: Floats) -> Floats:
    """Boxes of centre x, centre y, width, height as x1 y1 x2 y2."""
    centre, half = boxes[:, :2], boxes[:, 2:] / 2
    return np.concatenate([centre - half, centre + half], axis=1)


def spread(kinds: Floats, confidences: Floats, classes: int) -> Floats:
    """Return scores [P, C] of rows that name one class each; zero for classes that the model does not have."""
    scores = np.zeros((len(kinds), classes), np.float32)
    rows = np.flatnonzero((kinds >= 0) & (kinds < classes))
    scores[rows, kinds[rows].astype(np.int64)] = confidences[rows]
    return scores
