"""Vectors brought to a plane: the two directions along which they differ most (PCA). Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

MAX_VECTORS, WIDEST = 5000, 4096
MAX_LABEL_LENGTH = 80
_ROUNDS, _SPARE = 12, 6  # of the power iteration, and directions beyond the two that make it exact sooner
Matrix = np.ndarray[Any, np.dtype[Any]]


def flat(rows: Matrix, labels: Sequence[str]) -> tuple[dict[str, Any], bytes]:
    """Facts, and JSON {"points": [[x, y]], "labels": [text]} of at most 5,000 vectors."""
    total = len(rows)
    rows = rows[:MAX_VECTORS]
    points, shares = plane(rows)
    texts = [str(label)[:MAX_LABEL_LENGTH] for label in labels[: len(rows)]]
    content = {"points": [[float(f"{x:.5g}"), float(f"{y:.5g}")] for x, y in points.tolist()], "labels": texts}
    facts = {"vectors": total, "shown": len(rows), "width": int(rows.shape[1]), "shares": shares}
    return facts, json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def plane(rows: Matrix) -> tuple[Matrix, list[float]]:
    """Places in the plane of the two main directions, and which shares of the variance these are.

    A block power iteration: what it costs grows with the vectors, not with the square of their length.
    """
    rows = np.nan_to_num(rows.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    rows = rows / (np.abs(rows).max(initial=0.0) or 1.0)
    rows = rows - rows.mean(axis=0)
    total = float((rows**2).sum())
    width = rows.shape[1]
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(width, min(width, 2 + _SPARE))))[0]
    for _ in range(_ROUNDS):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    _, turn = np.linalg.eigh((rows @ basis).T @ (rows @ basis))
    axes = (basis @ turn)[:, ::-1][:, :2]
    if axes.shape[1] < 2:
        axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))
    axes = axes * np.where(
        np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], 0) < 0, -1, 1
    )  # same at each look
    points = rows @ axes
    return points, [round(float((points[:, i] ** 2).sum()) / total, 4) if total else 0.0 for i in (0, 1)]
