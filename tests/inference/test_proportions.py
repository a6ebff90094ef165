"""What counts of failures tell, however often one looks."""

import random

import pytest

from inference.serving.traffic.agreement import agreement
from inference.serving.traffic.counters import Counter, Slot
from inference.serving.traffic.proportions import is_more


@pytest.mark.parametrize("share", [0.002, 0.01, 0.1])
def test_equal_versions_are_seldom_called_different_however_often_one_looks(share):
    draws = random.Random(7)
    halted = 0
    for _trial in range(400):
        ours = theirs = 0
        for count in range(50, 4001, 50):
            ours += sum(draws.random() < share for _request in range(50))
            theirs += sum(draws.random() < share for _request in range(50))
            if count >= 200 and is_more(ours, count, theirs, count):
                halted += 1
                break

    assert halted <= 8  # of 400: at most 1 % are expected


def test_worse_version_is_found_soon():
    assert is_more(20, 200, 2, 200)
    assert is_more(40, 1000, 10, 1000)
    assert not is_more(0, 200, 20, 200)
    assert not is_more(3, 3, 0, 0)


def test_what_a_server_was_too_slow_for_counts_as_failed():
    counter, slot = Counter(), Slot(1, 1)
    for status in (200, 404, 408, 429, 500):
        counter.count_response(slot, status, 0.01)

    (tally,) = counter._tallies.values()
    assert (tally.requests, tally.failed, tally.refused) == (5, 3, 1)


def answer(boxes, name="a"):
    rows = ",".join(f'{{"name": "{name}", "box": {list(box)}}}' for box in boxes)
    return f'{{"predictions": [{rows}]}}'.encode()


def test_answers_are_compared_box_by_box():
    boxes = [(0, 0, 10, 10), (20, 20, 30, 30)]
    assert agreement(answer(boxes), answer(boxes)) == 1.0
    assert agreement(answer(boxes), answer(boxes[:1])) == pytest.approx(2 / 3)
    assert agreement(answer(boxes), answer(boxes, "b")) == 0.0
    assert agreement(answer([(0, 0, 10, 10)]), answer([(0, 0, 10, 6), (0, 0, 10, 9)])) == pytest.approx(2 / 3)
    assert agreement(answer([(0, 0, 0, 0)]), answer([(0, 0, 0, 0)])) == 0.0
    assert agreement(b'{"predictions": [{"name": "a", "box": [0, 0, "x", 1]}]}', answer(boxes)) is not None
