"""Curves of several runs on one grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import case_table
from training.experiments import grid as grids
from training.experiments.grid import Grid


def steps(*values):
    return np.array(values, np.int64)


def on_one_grid(curves, **how) -> Grid:
    return grids.on_one_grid([lambda own=own: own for own in curves], **how)


def test_grid_shows_each_step_alone_where_there_is_room():
    grid = on_one_grid([(steps(1, 3), np.array([0.5, 0.25])), (steps(2), np.array([9.0]))], width=10)

    assert grid.x.tolist() == [1, 2, 3]
    assert [np.nan_to_num(line.mean, nan=-1).tolist() for line in grid.lines] == [[0.5, -1, 0.25], [-1, 9.0, -1]]


def test_grid_keeps_the_lowest_and_the_highest_of_each_stretch():
    values = np.zeros(10_000)
    values[1_234], values[8_765] = 50.0, -50.0

    (line,) = on_one_grid([(np.arange(10_000), values)], width=100).lines

    assert (line.points, np.nanmax(line.high), np.nanmin(line.low)) == (10_000, 50.0, -50.0)
    assert line.mean[12] == pytest.approx(0.5)


def test_grid_of_a_part_counts_what_lies_in_it_alone():
    grid = on_one_grid([(np.arange(1_000), np.arange(1_000.0))], width=50, span=(100.2, 109.9))

    assert grid.x.tolist() == list(range(101, 110))
    assert grid.lines[0].points == 9


def test_grid_of_nothing_is_empty():
    empty = (np.empty(0, np.int64), np.empty(0))

    assert on_one_grid([empty], width=5).lines[0].points == 0
    assert on_one_grid([(steps(7), np.array([1.0]))], width=5).x.tolist() == [7]
    assert on_one_grid([(np.array([3.5]), np.array([1.0]))], width=5).lines[0].mean[0] == 1.0


@pytest.mark.parametrize("steps_of", [(1_700_000_000_000_000_001,), (2**62 - 600, 2**62)], ids=["one", "two"])
def test_grid_has_a_place_for_each_stretch_also_where_steps_are_nanoseconds(steps_of):
    grid = on_one_grid([(steps(*steps_of), np.ones(len(steps_of)))], width=1_000)

    assert len(grid.x) == len(grid.lines[0].mean) > 0
    assert np.nanmax(grid.lines[0].mean) == 1


def test_grid_of_values_whose_sum_no_number_holds_has_a_mean():
    (line,) = on_one_grid([(np.arange(4), np.full(4, 1e308))], width=2).lines

    assert line.mean.tolist() == [1e308, 1e308]


def test_grid_of_a_single_moment_is_one_stretch():
    assert on_one_grid([(np.array([3.5]), np.array([1.0]))], width=1_000).x.tolist() == [3.5]


@given(
    st.lists(st.tuples(st.integers(0, 3_000), st.floats(-1e6, 1e6)), min_size=1, max_size=200), st.integers(2, 40)
)  # fmt: skip
def test_grid_loses_no_point_and_no_extreme(points, width):
    x, y = (np.array(column) for column in zip(*points, strict=True))

    (line,) = on_one_grid([(x, y)], width=width).lines

    assert line.points == len(points)
    assert (np.nanmin(line.low), np.nanmax(line.high)) == (y.min(), y.max())
    filled = ~np.isnan(line.mean)
    slack = 1e-6 * np.abs(y).max()
    assert ((line.low - slack <= line.mean) & (line.mean <= line.high + slack))[filled].all()


@case_table(
    ("x", "span"),
    [
        (steps(1, 2, 3), (5.2, 5.4)),  # between two steps
        (steps(1, 2, 3), (-1e308, 1e308)),
        (steps(1, 2, 3), (1e308, 1.7e308)),
        (steps(-(2**62), 2**62), None),
        (steps(2**62, 2**62 - 1_500), None),
        (steps(2**62, 2**62), (2.0**62, 2.0**62)),
        (np.array([0.0, 1e10]), (0.0, 5e-324)),
        (np.array([0.0, 1e10]), (5e-324, 5e-324)),
        (steps(), (1.0, 1e308)),
    ],
)
@case_table("width", [2, 4_000])
def test_grid_of_any_part_of_any_axis_has_a_place_for_each_value(x, span, width):
    grid = on_one_grid([(x, np.ones(len(x)))], width=width, span=span)

    assert len(grid.x) == len(grid.lines[0].low) <= width
    assert np.isfinite(grid.x).all()
    assert np.nansum(grid.lines[0].mean) <= grid.lines[0].points


@pytest.mark.parametrize("value", [1e308, -1.7976931348623157e308])
def test_grid_means_values_whose_sum_no_number_holds(value):
    (line,) = on_one_grid([(np.arange(99), np.full(99, value))], width=2).lines

    assert line.mean.tolist() == pytest.approx([value, value])
    assert np.isfinite(line.mean).all()
