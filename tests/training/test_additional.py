"""`-gpu:0,1,2 -hint:text …` becomes typed fields; everything else is refused with the list."""

from __future__ import annotations

import pytest

from training.runs import extra_options
from training.runs.extra_options import BadSwitch, parse


def test_additional_parse_understands_the_whole_line():
    line = "-gpu:0,1,2 -hint:two words -CloseDelay:5 -keep:500 -ShowStep"

    found = parse(line, card_ids=[0, 1, 2, 3])

    assert found == {"gpu": [0, 1, 2], "hint": "two words", "close_delay_s": 5, "keep_ms": 500, "show_step": True}
    assert extra_options.written(found) == line


def test_additional_parse_ignores_case_and_takes_an_empty_line_for_nothing():
    assert parse("-KEEP:1 -nostep") == {"keep_ms": 1, "no_step": True}
    assert parse("   ") == {}


@pytest.mark.parametrize(
    "line",
    ["-gpu:99", "-gpu:-1", "-gpu:0,0", "-gpu:0;id", "-gpu", "-gpu:", "-gpu:" + ",".join(map(str, range(10_000)))],
)
def test_F03_additional_parse_refuses_wrong_cards_and_names_those_that_exist(line):
    with pytest.raises(BadSwitch, match="The GPUs are 0, 1"):
        parse(line, card_ids=[0, 1])


@pytest.mark.parametrize("line", ["-debug", "-exec:sh", "keep:5", "-keep:5; rm -rf /", "-hint:\x1b[31m", "-keep:1e9"])
def test_additional_parse_refuses_unknown_or_malformed_switches(line):
    with pytest.raises(BadSwitch):
        parse(line)


def test_additional_parse_answers_an_unknown_switch_with_the_list():
    with pytest.raises(BadSwitch, match="-gpu:0,1,2, -hint:text, -CloseDelay:5, -keep:500, -ShowStep, -NoStep"):
        parse("-verbose")


def test_additional_parse_refuses_contradictions_and_repetitions():
    with pytest.raises(BadSwitch, match=r"-ShowStep and -NoStep cannot be combined."):
        parse("-ShowStep -NoStep")
    with pytest.raises(BadSwitch, match=r"Duplicate switch -keep."):
        parse("-keep:1 -keep:2")
