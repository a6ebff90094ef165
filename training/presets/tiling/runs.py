"""COCO's compressed runs of a mask, written and read without a package.

Runs go down the columns, from left to right; the first one is not covered. Each length (from the fourth on: its
difference to the one before the last) is written in digits of five bits, the lowest first.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def encode(mask: np.ndarray, *, at: tuple[int, int] = (0, 0), size: tuple[int, int] | None = None) -> dict[str, Any]:
    """Encode a mask [H, W] bool as {"size": [H, W], "counts": text}, as pycocotools reads it.

    Args:
        at: left and top of the mask in a larger one, which is nowhere covered beside it; a small part costs little.
        size: width and height of that larger one.
    """
    width, height = size or (mask.shape[1], mask.shape[0])
    framed = np.zeros((mask.shape[1], mask.shape[0] + 2), np.int8)
    framed[:, 1:-1] = mask.T
    steps = np.diff(framed, axis=1)
    (columns, starts), ends = np.nonzero(steps == 1), np.nonzero(steps == -1)[1]
    first = (columns + at[0]) * height + at[1]
    edges = np.stack([first + starts, first + ends], 1).ravel()
    meets = edges[1:-1:2] == edges[2::2]  # one run from the foot of a column to the head of the next
    edge_mask = np.ones(len(edges), bool)
    edge_mask[1:-1:2] &= ~meets
    edge_mask[2::2] &= ~meets
    turns = [0, *edges[edge_mask].tolist()]
    if turns[-1] < width * height:
        turns.append(width * height)
    return {"size": [height, width], "counts": _text(np.diff(turns).tolist())}


def lengths(text: str | bytes) -> list[int]:
    """Return the lengths of the runs, alternately uncovered and covered."""
    run_lengths: list[int] = []
    number, shift = 0, 0
    for letter in text.encode() if isinstance(text, str) else text:
        digit = letter - 48
        number |= (digit & 31) << shift
        shift += 5
        if digit & 32:
            continue
        if digit & 16:
            number -= 1 << shift
        run_lengths.append(number + run_lengths[-2] if len(run_lengths) > 2 else number)
        number, shift = 0, 0
    return run_lengths


def paint(mask: np.ndarray, text: str | bytes, number: int) -> None:
    """Write a number where runs cover a mask [H, W] of their size, stored by columns (order F)."""
    flat = mask.reshape(-1, order="F")
    ends = np.cumsum(lengths(text)).tolist()
    for start, end in zip(ends[::2], ends[1::2], strict=False):
        flat[start:end] = number


def _text(run_lengths: list[int]) -> str:
    digits = []
    for index, length in enumerate(run_lengths):
        left = length - run_lengths[index - 2] if index > 2 else length
        while True:
            digit, left = left & 31, left >> 5
            last = left == -1 if digit & 16 else left == 0
            digits.append(chr(48 + digit + (0 if last else 32)))
            if last:
                break
    return "".join(digits)
