"""The remaining time of trainings that are replayed on a simulated clock; see `tests.bench.progress`."""

from __future__ import annotations

import pytest

from tests.bench import progress, recorded_progress
from tests.bench.recorded_progress import RECORDINGS, Recording, Row

CASES = [case for case in progress.CASES if case.bounded and (case.steps < 2000 or case.killed_at or case.budget_s)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_remaining_time_is_right_by_a_fifth_and_never_says_that_nothing_is_left(case):
    found = progress.judge(case, seed=1)

    assert found.error <= progress.MAX_ERROR
    assert found.zero_s <= progress.MAX_ZERO_S
    assert (found.falls, found.complete) == (0, 0)
    assert found.known >= 0.8


@pytest.mark.parametrize("name", ["quiet_steps", "loaded_steps", "busy_steps"])
def test_remaining_time_of_recorded_trainings_is_right_by_a_fifth(name):
    recording = Recording.read(RECORDINGS / f"{name}.jsonl")

    found = recorded_progress.judge(recording, recorded_progress.replay(recording))

    assert found.error <= progress.MAX_ERROR
    assert found.zero_s <= progress.MAX_ZERO_S
    assert found.known >= 0.95


def test_restored_training_is_estimated_better_by_the_pace_of_its_earlier_attempt():
    recording = Recording.read(RECORDINGS / "killed_steps.jsonl")  # as shown: each attempt by its own steps alone

    found = recorded_progress.judge(recording, recorded_progress.replay(recording))

    assert found.error < 0.7 * recorded_progress.judge(recording).error


def test_recordings_are_judged_second_by_second():
    def row(at_s: float, progress: float | None, left_s: float | None, attempt: int = 1) -> Row:
        return Row(at_s, attempt, "learning", None, None, progress, left_s, at_s, left_s)

    rows = [row(0, 0.1, 100), row(20, 0.2, 160), row(60, 0.15, 0.5), row(70, 0.7, None)]
    found = recorded_progress.judge(Recording("wrong", 100.0, rows))

    assert 1.0 <= found.error <= 1.5  # more than twice the truth for most of the time
    assert found.known == pytest.approx(60 / 90)
    assert (found.zero_s, found.falls) == (10.0, 1)


def test_recordings_of_killed_trainings_are_judged_from_the_last_attempt_on():
    rows = [Row(0, 1, "learning", 1, 9, 0.1, 5.0, 1.0, 5.0), Row(30, 1, "", None, None, None, None, 9.0, None)]
    rows += [Row(50, 2, "learning", 2, 9, 0.2, 50.0, 9.0, 40.0), Row(75, 2, "learning", 5, 9, 0.5, 25.0, 30.0, 20.0)]

    found = recorded_progress.judge(Recording("killed", 100.0, rows))

    assert found.error < 0.6
    assert found.known == 1
