"""Which run of a comparison is marked as the best by a metric."""

from __future__ import annotations

import pytest

from training.experiments.comparison import Figure, with_best


def figure(low, high):
    return Figure(count=2, step=1, last=high, lowest=low, lowest_step=0, highest=high, highest_step=1)


@pytest.mark.parametrize(
    ("key", "marked"),
    [
        ("val/ap50", [False, True, False]),
        ("train/loss", [True, False, False]),
        ("val/loss", [True, False, False]),
        ("train/lr", [False, False, False]),  # rates no model
    ],
)
def test_best_of_a_comparison_heeds_the_direction_of_the_metric(key, marked):
    each = [figure(0.1, 0.4), figure(0.2, 0.6), None]

    assert [is_best for _figure, is_best in with_best(key, each)] == marked


def test_equal_values_have_no_best():
    assert [is_best for _figure, is_best in with_best("val/ap50", [figure(0, 1), figure(0, 1)])] == [False, False]
