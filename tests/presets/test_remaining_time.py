"""The remaining time of trainings that are replayed on a simulated clock; see `tests.bench.progress`."""

from __future__ import annotations

import pytest

from tests.bench import progress

CASES = [case for case in progress.CASES if case.bounded and (case.steps < 2000 or case.killed_at or case.budget_s)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_remaining_time_is_right_by_a_fifth_and_never_says_that_nothing_is_left(case):
    found = progress.judge(case, seed=1)

    assert found.error <= progress.MAX_ERROR
    assert found.zero_s <= progress.MAX_ZERO_S
    assert (found.falls, found.complete) == (0, 0)
    assert found.known >= 0.8
