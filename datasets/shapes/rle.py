"""COCO's run-length masks, plain and compressed: checked and measured without numpy."""

from __future__ import annotations

from typing import Any


def rle_runs(rle: dict[str, Any]) -> tuple[tuple[int, int], list[int]]:
    """((height, width), run lengths: background first, column by column) of a plain or compressed RLE object.

    Raises:
        ValueError: it does not describe a mask of its own size.
    """
    size, counts = rle.get("size"), rle.get("counts")
    if (
        not isinstance(size, list)
        or len(size) != 2
        or not all(isinstance(side, int) and 0 < side <= 100_000 for side in size)
    ):
        raise ValueError("An RLE mask needs its size as height, width.")
    if isinstance(counts, str):
        runs = _decompress(counts)
    elif isinstance(counts, list) and all(isinstance(run, int) and run >= 0 for run in counts):
        runs = counts
    else:
        raise ValueError("An RLE mask needs counts: a list of whole numbers, or COCO's compressed text.")
    if sum(runs) != size[0] * size[1]:
        raise ValueError("The mask's runs do not add up to its size.")
    return (size[0], size[1]), runs


def _decompress(text: str) -> list[int]:
    runs: list[int] = []
    at = 0
    while at < len(text):
        value = shift = 0
        more = True
        while more:
            if at >= len(text) or shift > 60:
                raise ValueError("The mask's compressed text ends early.")
            code = ord(text[at]) - 48
            if not 0 <= code < 64:
                raise ValueError("The mask's compressed text has a foreign character.")
            value |= (code & 0x1F) << shift
            more = bool(code & 0x20)
            at, shift = at + 1, shift + 5
            if not more and code & 0x10:
                value |= -1 << shift
        if len(runs) > 2:
            value += runs[-2]
        if value < 0:
            raise ValueError("The mask has a negative run.")
        runs.append(value)
    return runs


def mask_extents(size: tuple[int, int], runs: list[int]) -> tuple[float, float, float, float]:
    """x, y, width, height of the mask's pixels."""
    height, at = size[0], 0
    left, right, top, bottom = size[1], 0, height, 0
    for index, run in enumerate(runs):
        if index % 2 and run:
            first, last = at, at + run - 1
            left, right = min(left, first // height), max(right, last // height)
            if first // height != last // height:
                top, bottom = 0, height - 1
            else:
                top, bottom = min(top, first % height), max(bottom, last % height)
        at += run
    return float(left), float(top), float(right - left + 1), float(bottom - top + 1)
