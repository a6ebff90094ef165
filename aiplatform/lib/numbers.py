"""Numbers that programs left behind, which may be anything that JSON can hold."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> float | None:
    """Return `value` as a finite number, or None; true and false are no numbers here."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}


def real(value: Any) -> float | None:
    """Return `value` as a number, NaN and infinity included, also written as "NaN", "Infinity" or "-inf"; else None."""
    if isinstance(value, str):
        return _NOT_FINITE.get(value.strip().lower().lstrip("+")) if len(value) < 12 else None
    if isinstance(value, float):
        return value
    return finite(value)
