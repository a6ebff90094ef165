"""Numbers and steps of any library as plain Python values. Imports none of these libraries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

MAX_STEP = 2**62
MAX_DEPTH = 5  # of mappings within mappings
NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}  # JSON has no literals for them


def number(value: Any) -> float:
    """Return a real number as a float; NaN and infinity are allowed.

    Args:
        value: int, float, Decimal, Fraction, a NumPy scalar, or an array or tensor with one element (of any library
            whose arrays have `item()`; on a GPU this waits for the result).

    Raises:
        TypeError, ValueError: it is no single number.
        OverflowError: it is beyond what a float can hold.
    """
    if isinstance(value, (str, bytes)):
        raise TypeError("a text is not a number")
    if hasattr(value, "detach"):  # a tensor that requires gradients
        value = value.detach()
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, complex):
        raise TypeError("a complex number is not a real number")
    return float(value)


def json_number(value: Any) -> int | float | str:
    """Return a number as JSON can hold it: not finite ones as "NaN", "Infinity" and "-Infinity"."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return value
    plain = number(value)
    return plain if math.isfinite(plain) else NOT_FINITE[str(plain)]


def step_of(value: Any) -> int | None:
    """Return a step as an int (decimals are cut off), None for what is no step."""
    try:
        plain = value if isinstance(value, int) else number(value)
        step = int(plain)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None
    return step if abs(step) <= MAX_STEP else None


def flat(metrics: Mapping[Any, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield name and value of metrics; mappings within become "outer/inner"."""
    for name, value in metrics.items():
        if isinstance(value, Mapping) and depth < MAX_DEPTH:
            yield from flat(value, f"{prefix}{name}/", depth + 1)
        else:
            yield f"{prefix}{name}", value
