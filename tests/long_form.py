"""What only the long form of the gate tries: cases like those before them, each of which takes its time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Give all values as parameters, those after the first `count` marked long."""
    known = list(values)
    return known[:count] + [pytest.param(value, marks=pytest.mark.long) for value in known[count:]]


def examples(most: int, share: int = 3) -> int:
    """How many made-up cases a property is asked: `most` divided by `share` in the short form."""
    return most if "AIP_LONG" in os.environ else max(10, most // share)
