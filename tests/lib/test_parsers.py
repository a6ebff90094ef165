"""JSON from outside: the fast look at all values finds what the slow one does, and bodies are bounded."""

from __future__ import annotations

import io
import random
import time
from typing import Any

import pytest
from rest_framework.exceptions import ParseError, ValidationError

from aiplatform.lib import parsers

LEAVES = [
    None, True, 1, -5, 1.5, float("inf"), float("nan"), 2**63, 2**63 - 1, -(2**63), -(2**63) - 1, "x", "\0",
    "\ud800\udc00", "\ud83d", "é", 1e308,
]  # fmt: skip


def parse(body: bytes) -> Any:
    return parsers.CarefulJSONParser().parse(io.BytesIO(body))


def made(dice: random.Random, depth: int = 0) -> Any:
    kind = dice.randrange(12) if depth < 5 else 11
    if kind < 3:
        return [made(dice, depth + 1) for _item in range(dice.randrange(4))]
    if kind < 5:
        return {dice.choice(["a", "b\0", "\ud800", "c"]): made(dice, depth + 1) for _item in range(dice.randrange(4))}
    return dice.choice(LEAVES)


def test_fast_look_finds_a_fault_exactly_where_the_slow_one_does():
    dice = random.Random(1)
    values = [made(dice) for _value in range(3000)]

    differing = [value for value in values if parsers._is_clean(value) == any(parsers._iter_faults(value))]

    assert differing == []
    assert 0 < sum(map(parsers._is_clean, values)) < 3000


@pytest.mark.parametrize("body", [b"[" * 66 + b"]" * 66, b'{"a":' * 65 + b"1" + b"}" * 65, b"[" * 100_000])
def test_what_is_too_deep_is_refused(body):
    with pytest.raises(ParseError):
        parse(body)


def test_65_lists_in_one_another_are_taken():
    assert parse(b"[" * 65 + b"]" * 65)


@pytest.mark.parametrize("number", [b"1" + b"0" * 19, b"9" * 5000, b"1e999", b"-" + b"9" * 19, b"NaN", b"-Infinity"])
def test_numbers_that_no_column_holds_are_refused_with_their_place(number):
    with pytest.raises(ValidationError) as refusal:
        parse(b'{"a": [1, ' + number + b"]}")

    assert list(refusal.value.detail) == ["a.1"]


def test_largest_numbers_are_taken():
    assert parse(b"[9223372036854775807, -9223372036854775808, 1e308]") == [2**63 - 1, -(2**63), 1e308]


def test_body_of_very_many_lists_is_refused_before_they_are_made():
    body = b"[" + b"[]," * 600_000 + b"1]"
    began = time.process_time()

    with pytest.raises(ParseError, match="200,000"):
        parse(body)

    assert time.process_time() - began < 0.05
