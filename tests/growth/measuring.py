"""Measure how the CPU time of a parser grows with its input."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.growth.registry import Parser

DOUBLINGS = 3
LARGEST = 96_000  # bytes of the largest input, unless the parser refuses it
MEASURABLE_S = 0.004  # of the largest input; shorter times cannot grow far
MAX_EXPONENT = 1.2
RETRIES = 12  # beside other processes caches are cold; the shortest of many runs is hardly disturbed
FURTHER_DOUBLINGS = 2  # where the result is still too steep and the parser takes larger inputs


@dataclass(frozen=True)
class Growth:
    """CPU seconds at each size, smallest first, and the exponent: the median of those of the measurable doublings.

    A quadratic parser has 2 at every doubling; one that outgrows a cache has it at one.
    """

    parser: str
    input: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        if self.seconds[-1] < MEASURABLE_S:
            return 0.0
        pairs = zip(self.seconds, self.seconds[1:], strict=False)
        steps = [math.log2(last / max(first, 1e-6)) for first, last in pairs if last >= MEASURABLE_S / 16]
        return statistics.median(steps)


def cpu_s(parse: Callable[[Any], object], value: Any, repeats: int = 2) -> float:
    """Return the shortest CPU time of some runs; it is the one with the least noise."""
    best = math.inf
    enabled = gc.isenabled()
    gc.disable()
    try:
        for _run in range(repeats):
            began = time.process_time()
            with suppress(Exception):
                parse(value)
            best = min(best, time.process_time() - began)
            if best < MEASURABLE_S / 16:
                break
    finally:
        if enabled:
            gc.enable()
    return best


def measure(parser: Parser, name: str, largest: int = LARGEST) -> Growth:
    """Double an input three times. Where the result is too steep, measure again and keep the shortest times."""
    make = parser.inputs[name]
    end = min(largest, parser.limit)
    sizes = tuple(end >> shift for shift in range(DOUBLINGS, -1, -1))
    seconds = [cpu_s(parser.parse, make(size)) for size in sizes]
    growth = Growth(parser.name, name, sizes, tuple(seconds))
    for _retry in range(RETRIES):
        if growth.exponent <= MAX_EXPONENT:
            break
        seconds = [min(old, cpu_s(parser.parse, make(size), 3)) for old, size in zip(seconds, sizes, strict=True)]
        growth = Growth(parser.name, name, sizes, tuple(seconds))
    further = [end << shift for shift in range(1, FURTHER_DOUBLINGS + 1) if end << shift <= parser.limit]
    if growth.exponent > MAX_EXPONENT and further:
        seconds += [cpu_s(parser.parse, make(size), 5) for size in further]
        growth = Growth(parser.name, name, (*sizes, *further), tuple(seconds))
    return growth
