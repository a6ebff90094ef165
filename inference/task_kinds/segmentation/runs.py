"""Masks as runs, in COCO's compressed form, without a package: the server knows none that reads it.

What the runs are and how they are read says training/presets/tiling/runs.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.presets.tiling import runs as coco_runs

Mask = NDArray[np.bool_]


def encode(mask: Mask) -> dict[str, Any]:
    """A mask [H, W] as {"size": [H, W], "counts": text}, as pycocotools reads it."""
    flat = np.ravel(mask, order="F")
    turns = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    edges = np.concatenate([[0], turns, [flat.size]]) if flat.size else np.zeros(1, np.int64)
    lengths = np.diff(edges).tolist()
    if flat.size and flat[0]:
        lengths.insert(0, 0)
    return {"size": [int(side) for side in mask.shape], "counts": _text(lengths)}


def decode(runs: dict[str, Any]) -> Mask:
    """The mask [H, W] of what `encode` gave."""
    height, width = runs["size"]
    lengths = coco_runs.lengths(runs["counts"])
    flat = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)
    return flat.reshape((height, width), order="F")


def _text(lengths: list[int]) -> str:
    digits = []
    for place, length in enumerate(lengths):
        left = length - lengths[place - 2] if place > 2 else length
        while True:
            digit, left = left & 31, left >> 5
            last = left == -1 if digit & 16 else left == 0
            digits.append(chr(48 + digit + (0 if last else 32)))
            if last:
                break
    return "".join(digits)
