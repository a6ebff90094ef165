"""Masks as runs, in COCO's compressed form, without a package: the server knows none that reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.presets.tiling.runs import encode, lengths

__all__ = ["decode", "encode"]

Mask = NDArray[np.bool_]


def decode(runs: dict[str, Any]) -> Mask:
    """The mask [H, W] of what `encode` gave."""
    height, width = runs["size"]
    each = lengths(runs["counts"])
    flat = np.repeat(np.arange(len(each)) % 2 == 1, each)
    return flat.reshape((height, width), order="F")
