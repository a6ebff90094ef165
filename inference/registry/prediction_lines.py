"""Predictions for one image as a run wrote them: values that are checked when they are read."""

from __future__ import annotations

from typing import Any

from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound

MAX_COUNT = 2**31 - 1  # that a column holds
Line = dict[str, Any]


def word(value: Any, longest: int) -> str:
    """A short text, where it is one."""
    return value[:longest] if isinstance(value, str) and is_sound(value) else ""


def to_count(value: Any) -> int:
    return int(min(max(finite(value) or 0, 0), MAX_COUNT))
