"""Speed-ups of variants: measured until their interval is narrow, and not shown where it is not."""

from __future__ import annotations

import pytest

from inference.conversion import table
from inference.conversion.converter import convert, speedups


def rounds(source_ms: list[float], variant_ms: list[float]) -> list[dict[str, dict[str, float]]]:
    return [
        {
            "source": {"p50_ms": source, "images_per_s": 1000 / source},
            "fp16": {"p50_ms": variant, "images_per_s": 1000 / variant},
        }
        for source, variant in zip(source_ms, variant_ms, strict=True)
    ]


def test_speedup_has_the_t_interval_of_the_logarithms():
    speedup = speedups.from_ratios([2.0, 2.0, 2.0, 2.0])
    wide = speedups.from_ratios([1.0, 4.0])

    assert (speedup.mean, speedup.low, speedup.high) == pytest.approx((2, 2, 2))
    assert speedup.is_narrow
    assert wide.mean == pytest.approx(2)
    assert wide.low < 0.01
    assert not wide.is_narrow
    assert speedups.from_ratios([2.0]) is None


def test_measuring_is_repeated_until_all_intervals_are_narrow_or_there_were_enough_rounds():
    narrow, wide = speedups.from_ratios([2.0, 2.01, 2.0]), speedups.from_ratios([1.0, 4.0, 2.0])

    assert not speedups.is_enough(speedups.MIN_ROUNDS - 1, [narrow])
    assert speedups.is_enough(speedups.MIN_ROUNDS, [narrow, narrow])
    assert not speedups.is_enough(speedups.MIN_ROUNDS, [narrow, wide])
    assert not speedups.is_enough(speedups.MIN_ROUNDS, [narrow, None])
    assert speedups.is_enough(speedups.MAX_ROUNDS, [narrow, wide])


def test_pauses_of_a_busy_machine_that_hit_both_leave_the_speedup_certain():
    single, _batches = convert._faster(rounds([10, 30, 10, 50], [5, 15, 5, 25]))["fp16"]

    assert convert._certain_speedups(single, None) == {"faster": 2.0, "faster_low": 2.0, "faster_high": 2.0}


def test_noise_gives_no_speedup_and_no_fastest_variant():
    single, batches = convert._faster(rounds([198, 1, 1, 1], [1, 1, 1, 1]))["fp16"]
    certain = convert._certain_speedups(single, batches)

    assert certain == {}
    assert not convert._is_faster({"p50_ms": 1.0} | certain)
    assert not convert._is_faster(None)
    assert not convert._is_faster({"faster_low": 1.01})  # within what is called equal
    assert convert._is_faster({"faster_low": 1.2})


def test_page_shows_a_speedup_only_where_the_conversion_is_certain():
    figures = {"size_bytes": 10, "differences": {}, "state": "accepted"}
    source = figures | {"speed": {"p50_ms": 198.0}}
    unsure = figures | {"speed": {"p50_ms": 1.0, "faster": None, "more": None}}
    certain = figures | {"speed": {"p50_ms": 99.0, "faster": 2.0, "more": None}}

    assert table._row("fp16", unsure, source, "")["faster"] is None
    assert table._row("fp16", certain, source, "")["faster"] == 2.0
