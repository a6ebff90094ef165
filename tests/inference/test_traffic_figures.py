"""Percentiles, intervals and agreement of answers, without a database."""

import json

import pytest

from inference.serving.traffic import histogram, proportions
from inference.serving.traffic.agreement import agreement


def test_percentiles_and_intervals_are_right():
    counts = {}
    for number in range(1, 1001):
        name = str(histogram.bucket(number / 1000))
        counts[name] = counts.get(name, 0) + 1
    for share in (0.5, 0.95, 0.99):
        assert histogram.percentile(counts, share) == pytest.approx(share, rel=0.1)
    assert histogram.percentile({}, 0.5) is None
    assert histogram.bucket(1e9) == histogram.LAST
    low, high = proportions.interval(5, 100)
    assert (round(low, 4), round(high, 4)) == (0.0215, 0.1118)  # as R's prop.test(correct = FALSE) has it
    assert proportions.interval(0, 0) == (0.0, 1.0)
    assert not proportions.is_more(1, 1, 0, 0)


def test_answers_agree_by_their_boxes_or_first_class():
    def boxes(*rows):
        named = [{"name": name, "score": 1, "box": box} for name, box in rows]
        return json.dumps({"predictions": named}).encode()

    answer_ = boxes(("a", [0, 0, 10, 10]), ("b", [20, 20, 30, 30]))
    assert agreement(answer_, answer_) == 1.0
    assert agreement(answer_, boxes(("a", [0, 0, 10, 9]))) == pytest.approx(2 / 3)
    assert agreement(answer_, boxes(("b", [0, 0, 10, 10]))) == 0.0
    assert agreement(boxes(), boxes()) == 1.0
    tags = b'{"predictions": [{"name": "cat", "score": 0.9}]}'
    assert agreement(tags, tags) == 1.0
    assert agreement(tags, tags.replace(b"cat", b"dog")) == 0.0
    for odd in (b"", b"[]", b'{"predictions": 3}', b'{"predictions": [1]}'):
        assert agreement(odd, tags) is None
