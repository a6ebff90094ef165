"""Ranges as people write them and as rows keep them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import case_table
from training.studies import space
from training.studies.space import BadRange


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("lr = 1e-5 .. 1e-1 log", {"name": "lr", "type": "float", "low": 1e-5, "high": 0.1, "log": True}),
        ("layers = 1 .. 8", {"name": "layers", "type": "int", "low": 1, "high": 8, "log": False}),
        ("x=-5..5 float", {"name": "x", "type": "float", "low": -5.0, "high": 5.0, "log": False}),
        ("w = 32..224 step 32", {"name": "w", "type": "int", "low": 32, "high": 224, "log": False, "step": 32}),
        ("w = 0 .. 10 step 4", {"name": "w", "type": "int", "low": 0, "high": 8, "log": False, "step": 4}),
        ("d = 0 .. 1 step 0.25", {"name": "d", "type": "float", "low": 0.0, "high": 1.0, "log": False, "step": 0.25}),
        ("o = adam, sgd", {"name": "o", "type": "categorical", "choices": ["adam", "sgd"]}),
        ("b = true, 3, 0.5, word", {"name": "b", "type": "categorical", "choices": [True, 3, 0.5, "word"]}),
    ],
)
def test_line_says_a_range_and_the_row_says_it_back(line, row):
    [found] = space.read([line])

    assert found.as_row() == row
    assert space.of_rows([row]) == [found] == space.read([row])
    assert space.read([str(found)]) == [found]


@case_table(
    "wrong",
    [
        "x", "= 1 .. 2", "x = 2 .. 1", "x = 0 .. 1 log", "x = 1 .. 8 log step 2", "x = 1 .. 2 step 5", "x = a .. b",
        "x = 1 .. 2 tea", "x = 1 .. nan", "x = 1 .. 1e999", "x = 1 .. 1e300 int", "x = 1 .. 99999999999999999999",
        {"low": 1}, {"name": "x", "low": True, "high": 2}, {"name": "x", "choices": []},
        {"name": "x", "choices": [1, 1]},
        {"name": "x", "choices": [None]}, {"name": "x", "low": 1, "high": 2, "type": "colour"}, 7,
        {"name": "x", "low": 1, "high": 2, "points": 1e9}, {"name": "\0", "low": 1, "high": 2},
    ],
)  # fmt: skip
def test_what_is_no_range_is_refused(wrong):
    with pytest.raises(BadRange):
        space.read([wrong])


def test_names_are_given_once():
    with pytest.raises(BadRange, match=r"Duplicate parameter x."):
        space.read(["x = 1 .. 2", "x = 3 .. 4"])


@given(
    low=st.floats(-1e6, 1e6), width=st.floats(0, 1e6), points=st.integers(1, 9),
    log=st.booleans(), whole=st.booleans(),
)  # fmt: skip
def test_grid_lies_in_its_range_and_its_values_are_read_back(low, width, points, log, whole):
    if whole:
        low, width = float(int(low)), float(int(width))
    if log:
        low = abs(low) + 1
    row = {"name": "x", "type": "int" if whole else "float", "low": low, "high": low + width, "log": log}
    one = space.of_row(row)

    values = one.on_grid(points)

    assert 1 <= len(values) <= points
    assert [one.read(value) for value in values] == values
    assert one.read(one.middle()) == one.middle()
