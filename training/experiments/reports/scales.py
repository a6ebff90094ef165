"""Axes of drawings: what part of the numbers is shown, where a number lies, and which are written beside it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

Numbers = np.ndarray[Any, np.dtype[Any]]
FARTHEST = 1e300  # beyond it no axis is divided


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`, drawn from pixel `begin` to pixel `end`; by magnitude where `log`."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def at(self, values: Numbers) -> Numbers:
        """Pixels of numbers; NaN of what is no number, infinite, or not above 0 on an axis by magnitude."""
        usable = np.isfinite(values) & (values > 0 if self.log else True)
        clean = np.where(usable, np.clip(values, -FARTHEST, FARTHEST), self.low)
        low, high = self.low, self.high
        if self.log:
            clean, low, high = np.log10(clean), math.log10(low), math.log10(high)
        share = (clean - low) / (high - low)
        return np.where(usable, self.begin + np.clip(share, 0, 1) * (self.end - self.begin), np.nan)

    @property
    def ticks(self) -> list[float]:
        """Round numbers for the labels of the axis, about three to seven."""
        return _magnitudes(self.low, self.high) if self.log else _steps(self.low, self.high)


def over(values: Iterable[Numbers], *, begin: float, end: float, log: bool = False, room: float = 0.0) -> Scale:
    """An axis for all of these numbers. What no axis can show (NaN, infinite, by magnitude not above 0) is passed over.

    Args:
        room: share of the axis that is left free at both ends.
    """
    low, high = math.inf, -math.inf
    for each in values:
        shown = np.clip(each[np.isfinite(each) & (each > 0 if log else True)], -FARTHEST, FARTHEST)
        if len(shown):
            low, high = min(low, float(shown.min())), max(high, float(shown.max()))
    if low > high:
        low, high = (1.0, 10.0) if log else (0.0, 1.0)
    if log:
        low, high = max(low, 1e-300), max(high, 1e-300)
        wide = max(math.log10(high) - math.log10(low), 1e-9)
        by = wide * room if high > low * (1 + 1e-9) else 0.5
        return Scale(10 ** max(math.log10(low) - by, -300), 10 ** min(math.log10(high) + by, 300), begin, end, log)
    apart = high - low > max(abs(high), abs(low)) * 1e-12
    by = (high - low) * room if apart else abs(high) * 0.1 or 0.5
    return Scale(low - by, high + by, begin, end)


def _steps(low: float, high: float) -> list[float]:
    rough = (high - low) / 5
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * by for by in (1, 2, 5, 10) if size * by >= rough * 0.75)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)] if last - first <= 20 else []


def _magnitudes(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first >= 2:
        apart = math.ceil((last - first) / 6)
        return [10.0**exponent for exponent in range(first, last + 1, apart)]
    ticks = [by * 10.0**exponent for exponent in range(first - 1, last + 1) for by in (1, 2, 5)]
    inside = [tick for tick in ticks if low <= tick <= high]
    return inside if len(inside) >= 2 else _steps(low, high)


def written(value: float) -> str:
    """Format a number as an axis label: 0.05, 1,000, 2e+06."""
    if value == 0:
        return "0"
    if abs(value) >= 1e6 or abs(value) < 1e-4:
        return f"{value:.3g}"
    return f"{value:,.6g}"
