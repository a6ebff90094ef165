"""Parameters that only the long form of the gate tries: cases like those before them, each of which takes seconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Give all values as parameters, those after the first `count` marked long."""
    known = list(values)
    return known[:count] + [pytest.param(value, marks=pytest.mark.long) for value in known[count:]]
