"""What a picture looks like, in 22 numbers that no further network makes, and how far two groups of pictures are apart.

Made of the small picture that statistics.py reads anyway, in a third of a millisecond:

- mean, deviation and skewness of brightness and of two colour differences (Stricker, Orengo: Similarity of color
  images, 1995), on opponent axes, so that light does not count three times;
- the directions of edges in eight parts of a half turn, each by its share of all gradient (Dalal, Triggs: Histograms
  of oriented gradients, 2005; here one histogram for the whole picture);
- the strength of fine and coarse edges, sharpness, number of pixels, and width to height.

A model's own features would see what it is sensitive to, but exported graphs end in boxes or scores: few have an output
for them, and those of two models could not be compared. These numbers are of the picture alone.

Of a group only sums and squares are kept. The distance is that of Fréchet between normal distributions (Dowson, Landau:
The Fréchet distance between multivariate normal distributions, 1982) with diagonal covariances, each number in standard
deviations of the group before, so that a hundred pictures are enough; how numbers go together is not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
HUE_BINS = 8  # of a half turn
COARSE = 4  # small pixels of a side that are one coarse pixel
COLOR_FEATURES = ("brightness", "red_green", "yellow_blue")
NAMES = (
    *(f"{word}_{moment}" for word in COLOR_FEATURES for moment in ("mean", "deviation", "skewness")),
    *(f"edges_{180 * part // HUE_BINS}" for part in range(HUE_BINS)),
    "fine_edges",
    "coarse_edges",
    "sharpness",
    "size",
    "shape",
)
LENGTH = len(NAMES)
MIN_DEVIATION = 0.02  # deviation, of numbers within about 0..1: training images of one size say nothing about others
MAX_TERM = 9.0  # what one number adds at most, 3 standard deviations: no single one decides alone
FAINT = 1e-3  # gradients of a picture without any
#: Of pictures split by chance: how many times, the share that is less far apart, and the least of them.
SPLITS, RARE, FEWEST = 500, 0.99, 40
Group = dict[str, Any]


def compute(small: Floats, grey: Floats, statistics: Mapping[str, float]) -> list[float]:
    """Return the descriptor of an image: numbers of about 0..1 each.

    Args:
        small: the small picture, S × S × 3, RGB within 0..1.
        grey: its brightness, S × S.
        statistics: sharpness, size and shape, as computed by statistics.py.
    """
    red, green, blue = small[..., 0], small[..., 1], small[..., 2]
    axes = np.stack([grey, red - green, (red + green) / 2 - blue]).reshape(3, -1)
    means = axes.mean(1)
    axes -= means[:, None]
    powers = axes * axes
    deviations, thirds = np.sqrt(powers.mean(1)), np.cbrt(np.einsum("ij,ij->i", powers, axes) / axes.shape[1])
    moments = np.stack([means, deviations, thirds], axis=1).ravel()
    across, down = grey[1:-1, 2:] - grey[1:-1, :-2], grey[2:, 1:-1] - grey[:-2, 1:-1]
    strength = np.sqrt(across * across + down * down)
    turn = (np.arctan2(down, across) * (HUE_BINS / math.pi)).astype(np.int32) % HUE_BINS
    shares = np.bincount(turn.ravel(), strength.ravel(), HUE_BINS) / (strength.sum() + FAINT)
    side = grey.shape[0] // COARSE
    coarse = grey.reshape(side, COARSE, side, COARSE).mean((1, 3))
    steps = np.abs(np.diff(coarse, axis=0)).mean() + np.abs(np.diff(coarse, axis=1)).mean()
    edges = [math.log10(float(value) + FAINT) / 3 + 1 for value in (strength.mean(), steps)]
    values = [
        *moments.tolist(),
        *shares.tolist(),
        *edges,
        statistics["sharpness"],
        statistics["size"],
        statistics["shape"],
    ]
    return [round(float(value), 5) for value in values]


def kind_of(name: str) -> str:
    """What one of NAMES is about: one of WORDS, edges, fine_edges, coarse_edges, sharpness, size, shape."""
    begin = name.rsplit("_", 1)[0]
    return begin if begin in (*COLOR_FEATURES, "edges") else name


def empty() -> Group:
    """A group of no pictures."""
    return {"images": 0, "sums": [0.0] * LENGTH, "squares": [0.0] * LENGTH}


def add(group: Group, numbers: Sequence[float]) -> None:
    """Count an image by its descriptor."""
    group["images"] += 1
    for index, value in enumerate(numbers):
        group["sums"][index] += value
        group["squares"][index] += value * value


def together(ones: Group, others: Mapping[str, Any]) -> Group:
    """Both groups as one."""
    made: Group = {"images": ones["images"] + others["images"]}
    for name in ("sums", "squares"):
        made[name] = [a + b for a, b in zip(ones[name], others[name], strict=True)]
    return made


def parse_group(value: Any) -> Group:
    """Check a group reported by a program; ValueError, TypeError or KeyError where it is not one."""
    count = value["images"]
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**31:
        raise ValueError("no count")
    group: Group = {"images": count}
    for name in ("sums", "squares"):
        values = [float(number) for number in value[name]]
        if len(values) != LENGTH or not all(abs(number) <= 4 * count + 0.01 for number in values):
            raise ValueError("no sums of such numbers")
        group[name] = values
    return group


def squared(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[float]:
    """Return the contribution of each number to the squared distance, at most MAX_TERM; no group is empty."""
    (means, deviations), (others, wider) = _moments(before), _moments(now)
    squares = ((b - a) ** 2 + (v - u) ** 2 for a, b, u, v in zip(means, others, deviations, wider, strict=True))
    return [min(MAX_TERM, value / max(u, MIN_DEVIATION) ** 2) for value, u in zip(squares, deviations, strict=True)]


def _moments(group: Mapping[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    means = np.array(group["sums"]) / group["images"]
    spread = np.array(group["squares"]) / group["images"] - means**2
    return means, np.sqrt(np.maximum(0.0, spread))


def chance(rows: Sequence[Sequence[float]]) -> float | None:
    """The square of the distance that 1 of 100 random halves of pictures has from the other half, by number.

    None with too few pictures. It goes with 1/n + 1/m where n and m are the pictures of both sides, see `allowed`.
    """
    half = len(rows) // 2
    if half < FEWEST:
        return None
    table = np.array(rows, np.float64)
    random = np.random.default_rng(0)
    distances = []
    for _number in range(SPLITS):
        order = random.permutation(len(table))
        sides = [table[order[:half]], table[order[half : 2 * half]]]
        ones, others = ({"images": half, "sums": side.sum(0), "squares": (side**2).sum(0)} for side in sides)
        distances.append(sum(squared(ones, others)) / LENGTH)
    return round(float(np.quantile(distances, RARE)), 6)


def allowed(rare: float, *, halves: int, before: int, now: int) -> float:
    """The distance that 1 of 100 equal samples of `now` pictures has from `before`.

    Never less than that of the halves: what more pictures than those could tell apart nobody has tried.

    Args:
        rare: result of `chance` for halves of `halves` images.
    """
    return math.sqrt(rare * max(1.0, (1 / before + 1 / now) * halves / 2))
