"""Count the values of a tensor whose shape a foreign file claims."""

from __future__ import annotations

from collections.abc import Sequence

MAX_RANK = 64  # PyTorch knows 64 dimensions, ONNX runtimes know fewer
MAX_VALUES = 1 << 48  # of one tensor; 256 TiB of bytes


class ImpossibleShape(ValueError):
    """More dimensions or values than any model has."""


def count_values(shape: Sequence[int]) -> int:
    """Return the product of the sizes, without arithmetic on numbers larger than a machine word squared.

    Raises:
        ImpossibleShape: too many dimensions or values, or a negative size.
    """
    if len(shape) > MAX_RANK:
        raise ImpossibleShape
    count = 1
    for size in shape:
        if not 0 <= size <= MAX_VALUES:
            raise ImpossibleShape
        count *= size
        if count > MAX_VALUES:
            raise ImpossibleShape
    return count
