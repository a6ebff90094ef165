"""How far two tallies are from each other. Pure.

The population stability index of two histograms is the sum over bins of (q − p) · ln(q / p), Kullback and Leibler's
divergence both ways (Information Theory and Statistics, 1959); below 0.1 counts as steady and above 0.25 as another
population in credit scoring, where it comes from (Siddiqi: Credit Risk Scorecards, 2006).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiplatform.lib.parsers import is_sound
from inference.kit.models import descriptor
from inference.kit.models.statistics import BINS, FEATURES, FIELDS, MAX_CLASSES, Tally, empty

STEADY, OTHER = 0.1, 0.25
VERDICTS = ("steady", "moved", "other", "unknown")
APART = 0.25  # standard deviations from which pictures as a whole are others; Cohen calls 0.2 small, 0.5 medium
MIN_IMAGES = 100  # pictures on either side
PRIOR_COUNT = 0.5  # added to each bin, so that an empty one is no infinity (Jeffreys' prior)
BROAD = 10  # of bins that neighbours are put together to, so that few pictures are not spread too thin


@dataclass(frozen=True)
class Drift:
    """One comparison: `value` is the index, None with too few pictures; `verdict` steady, moved, other, unknown."""

    name: str
    value: float | None
    before: Sequence[float]  # shares, 0..1
    now: Sequence[float]
    bins: Sequence[str] = ()  # names of classes; () where they are equal parts of 0..1

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "unknown"
        return "steady" if self.value < STEADY else "moved" if self.value < OTHER else "other"


def add_up(tallies: Iterable[Mapping[str, Any]]) -> Tally:
    """Add tallies up."""
    made = empty()
    for tally in tallies:
        made["images"] += tally["images"]
        for name, count in tally["classes"].items():
            made["classes"][name] = made["classes"].get(name, 0) + count
        made["scores"] = [a + b for a, b in zip(made["scores"], tally["scores"], strict=True)]
        for name in FEATURES:
            pair = zip(made["features"][name], tally["features"][name], strict=True)
            made["features"][name] = [a + b for a, b in pair]
        for name in ("sums", "squares"):
            pair = zip(made["layout"][name], tally["layout"][name], strict=True)
            made["layout"][name] = [a + b for a, b in pair]
        made["looks"] = descriptor.together(made["looks"], tally.get("looks") or descriptor.empty())
    return made


def index(before: Sequence[int], now: Sequence[int], pictures: tuple[int, int] | None = None) -> float:
    """The population stability index of two lists of counts, less what chance alone makes of so few.

    With n and m counts in k bins chance gives (k − 1) · (1/n + 1/m) in the mean (Yurdakul, Naranjo: Statistical
    properties of the population stability index, 2020).

    Args:
        pictures: on which each side was counted. Objects of one picture are alike, so that a hundred of them say no
            more than their picture does: chance is that of as many pictures.
    """
    n, m, k = sum(before), sum(now), len(before)
    if not n or not m or k < 2:
        return 0.0
    p = [(count + PRIOR_COUNT) / (n + PRIOR_COUNT * k) for count in before]
    q = [(count + PRIOR_COUNT) / (m + PRIOR_COUNT * k) for count in now]
    divergence = sum((b - a) * math.log(b / a) for a, b in zip(p, q, strict=True))
    sizes = pictures or (n, m)
    return max(0.0, divergence - (k - 1) * (1 / min(n, sizes[0]) + 1 / min(m, sizes[1])))


def compare(before: Tally, now: Tally) -> list[Drift]:
    """Compare two tallies: first predictions, by classes and scores, then the features of images."""
    enough = min(before["images"], now["images"]) >= MIN_IMAGES
    names = sorted({*before["classes"], *now["classes"]}, key=lambda name: -before["classes"].get(name, 0))
    classes = [[tally["classes"].get(name, 0) for name in names] for tally in (before, now)]
    numbers: dict[str, tuple[Sequence[int], Sequence[int]]] = {"scores": (before["scores"], now["scores"])}
    numbers |= {name: (before["features"][name], now["features"][name]) for name in FEATURES}
    pictures = max(1, before["images"]), max(1, now["images"])
    first = _drift("classes", classes[0], classes[1], pictures, enough=enough, bins=names)
    return [first, *(_drift(name, _broad(b), _broad(n), pictures, enough=enough) for name, (b, n) in numbers.items())]


def _broad(counts: Sequence[int]) -> list[int]:
    step = BINS // BROAD
    return [sum(counts[start : start + step]) for start in range(0, BINS, step)]


def _drift(
    name: str,
    before: Sequence[int],
    now: Sequence[int],
    pictures: tuple[int, int],
    *,
    enough: bool,
    bins: Sequence[str] = (),
) -> Drift:
    value = round(index(before, now, pictures), 3) if enough and any(before) and any(now) else None
    return Drift(name, value, _shares(before), _shares(now), bins)


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [round(count / total, 4) if total else 0.0 for count in counts]


def distance(before: Tally, now: Tally) -> float | None:
    """How far the mean layouts are apart, in standard deviations of single pictures; None with too few pictures.

    The root of the mean over all 27 fields of the squared difference of means, each by the variance of the pictures
    before: Mahalanobis' distance with a diagonal covariance, by field.
    """
    if min(before["images"], now["images"]) < MIN_IMAGES:
        return None
    (m, v), (n, _w) = _moments(before), _moments(now)
    noise = 1 / before["images"] + 1 / now["images"]
    squares = [max(0.0, (b - a) ** 2 / max(s, 1e-6) - noise) for a, b, s in zip(m, n, v, strict=True)]
    return round(math.sqrt(sum(squares) / FIELDS), 3)


@dataclass(frozen=True)
class Looks:
    """How far pictures as a whole are apart, see inference/kit/models/descriptor.py.

    Attributes:
        apart: root of the mean over all numbers, in standard deviations of the pictures before; None: too few pictures.
        allowed: what 1 of 100 equal samples is apart; None where nobody tried, for it takes the training images.
        shares: of the square of the distance, by what the numbers are about, the largest first.
    """

    apart: float | None = None
    allowed: float | None = None
    shares: Sequence[tuple[str, float]] = ()

    @property
    def verdict(self) -> str:
        if self.apart is None or self.allowed is None:
            return "unknown"
        if self.apart <= self.allowed:
            return "steady"
        return "other" if self.apart >= APART else "moved"


def looks(before: Tally, now: Tally) -> Looks:
    """Compare pictures as a whole."""
    ones, others = (tally.get("looks") or descriptor.empty() for tally in (before, now))
    if min(ones["images"], others["images"]) < MIN_IMAGES:
        return Looks()
    squares = descriptor.squared(ones, others)
    shares: dict[str, float] = {}
    for name, value in zip(descriptor.NAMES, squares, strict=True):
        kind = descriptor.kind_of(name)
        shares[kind] = shares.get(kind, 0.0) + value / max(sum(squares), 1e-9)
    ordered = sorted(((name, round(share, 3)) for name, share in shares.items()), key=lambda pair: -pair[1])
    tried, allowed = before.get("chance"), None
    if tried:
        counts = {"before": ones["images"], "now": others["images"]}
        allowed = round(descriptor.allowed(tried["rare"], halves=tried["halves"], **counts), 3)
    return Looks(round(math.sqrt(sum(squares) / descriptor.LENGTH), 3), allowed, ordered)


def _moments(tally: Tally) -> tuple[list[float], list[float]]:
    count = tally["images"]
    means = [value / count for value in tally["layout"]["sums"]]
    squares = zip(tally["layout"]["squares"], means, strict=True)
    return means, [max(0.0, value / count - mean * mean) for value, mean in squares]


def validate(reported: Any) -> Tally | None:
    """Return the tally that a program reported, with every field checked, or None if it is invalid."""
    try:
        tally = empty()
        tally["images"] = _count(reported["images"])
        tally["classes"] = {str(name)[:200]: _count(n) for name, n in list(reported["classes"].items())[:MAX_CLASSES]}
        tally["scores"] = _counts(reported["scores"])
        tally["features"] = {name: _counts(reported["features"][name]) for name in FEATURES}
        for name in ("sums", "squares"):
            layout_values = [float(value) for value in reported["layout"][name]]
            if len(layout_values) != FIELDS or not all(
                -0.01 <= value <= tally["images"] + 0.01 for value in layout_values
            ):
                return None
            tally["layout"][name] = layout_values
        if "looks" in reported:  # servers that began before it was counted have none
            tally["looks"] = descriptor.parse_group(reported["looks"])
        if reported.get("chance") is not None:
            tally["chance"] = _chance(reported["chance"])
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
        return None
    return tally if is_sound(tally) else None


def _chance(values: Any) -> dict[str, float]:
    chance = {"halves": _count(values["halves"]), "rare": float(values["rare"])}
    if not chance["halves"] or not 0 < chance["rare"] <= descriptor.MAX_TERM:
        raise ValueError("no distance")
    return chance


def _counts(values: Any) -> list[int]:
    if not isinstance(values, list) or len(values) != BINS:
        raise ValueError("another number of bins")
    return [_count(value) for value in values]


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError("no count")
    return value
