"""COCO's compressed runs of a mask, read without a package.

Runs go down the columns, from left to right; the first one is not covered. Each length (from the fourth on: its
difference to the one before the last) is written in digits of five bits, the lowest first.
"""

from __future__ import annotations


def lengths(text: str | bytes) -> list[int]:
    """The lengths of the runs, in turn not covered and covered."""
    found: list[int] = []
    number, shift = 0, 0
    for letter in text.encode() if isinstance(text, str) else text:
        digit = letter - 48
        number |= (digit & 31) << shift
        shift += 5
        if digit & 32:
            continue
        if digit & 16:
            number -= 1 << shift
        found.append(number + found[-2] if len(found) > 2 else number)
        number, shift = 0, 0
    return found
