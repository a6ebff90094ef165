"""Join maps of class probabilities that several segmenters made of one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.kit.model_io.decode import Floats, Placement
from inference.kit.model_io.spec import InputSpec

EPSILON = 1e-12  # replaces zero where a logarithm is taken


@dataclass(frozen=True)
class Seen:
    """A map of probabilities [C, h, w], the placement of the image in the input it was made of, and its weight."""

    shares: Floats
    placement: Placement
    input: InputSpec
    weight: float


def joined(maps: Sequence[Seen]) -> Floats:
    """Return the logarithm of the weighted mean of the maps, in the cells of the first [C, h, w]."""
    first = maps[0]
    total = sum(part.weight * (part.shares if part is first else _as_seen_by(first, part)) for part in maps)
    mean = total / sum(part.weight for part in maps)
    return np.asarray(np.log(np.maximum(mean, EPSILON)), np.float32)


def _as_seen_by(first: Seen, other: Seen) -> NDArray[np.float64]:
    """The values of a map at the middles of another's cells, between its own cells in both directions."""
    _, rows, columns = first.shares.shape
    _, high, wide = other.shares.shape
    across = _positions(
        columns, first.input.width, (first.placement.scale_x, first.placement.offset_x),
        wide, other.input.width, (other.placement.scale_x, other.placement.offset_x),
    )  # fmt: skip
    down = _positions(
        rows, first.input.height, (first.placement.scale_y, first.placement.offset_y),
        high, other.input.height, (other.placement.scale_y, other.placement.offset_y),
    )  # fmt: skip
    return _between(_between(other.shares, down, 1), across, 2)


def _positions(
    cells: int, side: int, placed: tuple[float, float], others: int, other_side: int, other: tuple[float, float]
) -> NDArray[np.float64]:
    """Return the center of each cell of one map in cells of the other, along one direction."""
    picture = ((np.arange(cells) + 0.5) * side / cells - placed[1]) / placed[0]
    return ((picture * other[0] + other[1]) * others / other_side - 0.5).clip(0, others - 1)


def _between(values: NDArray[Any], places: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    low = np.floor(places).astype(np.int64)
    high = np.minimum(low + 1, values.shape[axis] - 1)
    shape = [1, 1, 1]
    shape[axis] = len(places)
    share = (places - low).reshape(shape)
    return np.asarray(np.take(values, low, axis) * (1 - share) + np.take(values, high, axis) * share, np.float64)
