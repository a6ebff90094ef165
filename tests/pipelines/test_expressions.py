"""Rules of gates and conditions."""

import contextlib
import math
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aiplatform.lib.errors import Invalid
from inference.pipelines.expressions import MAX_LENGTH, NoAnswer, UnknownFigure, parse, written
from tests.cases import case_table

FIGURES = {"AP50": 0.875, "mAP": 0.5, "champion.AP50": 0.75, "val/ap50": 0.25, "AP50 small": 0.125, "bad": math.nan}


@case_table(
    ("rule", "holds"),
    [
        ("AP50 >= champion.AP50 + 0.1 and mAP < .75", True),
        ("AP50 - 0.5 - 0.25 == 0.125 and 8 / 4 / 2 == 1", True),
        ("not AP50 < 0.5 or false", True),
        ("`AP50 small` > `val/ap50`", False),
        ("max(abs(-AP50), mAP, 0.1) == AP50 and min(1, 2) == 1", True),
        ('preset == "classify_small" and deploy', True),
        ("bad > 0 or AP50 > 0.1", False),
        ("not (bad < 0)", False),
        ("bad != bad", False),
        ("max(0.1, bad) != 0.1", False),
        ("1 / 0 != 2", False),
    ],
)
def test_a_rule_holds_or_does_not(rule, holds):
    rule = parse(rule, switches=True)

    assert rule.value(FIGURES | {"preset": "classify_small", "deploy": True}) is holds


@case_table(
    ("rule", "says"),
    [
        ("", "Enter a rule"),
        ("AP50 = 1", "At character 6 of the rule, “= 1”: write == to compare."),
        ("AP50 > 1 && mAP > 1", "and, or and not as words"),
        ("0 < AP50 < 1", "two values at a time"),
        ("AP50 > ", "At the end of the rule"),
        ("AP50", "a yes/no value is required"),
        ("AP50 + 1", "a yes/no value is required"),
        ("(AP50 > 1", "closing parenthesis"),
        ("AP50 mAP > 1", "At character 6 of the rule, “mAP > 1”: an operator is missing"),
        ('AP50 > "x"', "a number is required"),
        ('"x" == 1', "never equal"),
        ("AP@50 > 1", "in backticks"),
        ("abs(1, 2) > 1", "abs requires one value"),
        ("min() > 1", "is missing here"),
        ("__import__('os').system('x')", "not part of the rule syntax"),
        ("not " * 200 + "AP50 > 1", "at most 50"),
        ("(" * 60 + "AP50 > 1" + ")" * 60, "at most 50"),
        ("1 > 0 and " * 100 + "1 > 0", "at most 1000 characters"),
    ],
)
def test_what_is_no_rule_is_refused_with_the_place(rule, says):
    with pytest.raises(Invalid) as refused:
        parse(rule)

    assert says in refused.value.message


def test_an_unknown_figure_fails_with_the_near_ones_even_where_the_rest_decides():
    rule = parse("AP50 > 0.1 or ap > 1 or ap50 > 2")
    assert rule.names() == {"AP50", "ap", "ap50"}

    with pytest.raises(UnknownFigure, match=r"Unknown metric ap, ap50\. Similar metrics: .*AP50") as failed:
        rule.value(FIGURES)
    assert failed.value.facts == {"unknown": ["ap", "ap50"]}
    with pytest.raises(UnknownFigure, match="`val/ap50`"):
        parse("val.ap50 > 1").value(FIGURES)
    with pytest.raises(NoAnswer, match="“x” is not a number"):
        parse("preset > 1").value({"preset": "x"})
    assert written("champion.AP50") == "champion.AP50"


PIECES = [
    "AP50",
    "mAP",
    "`a b`",
    "x.y",
    "1",
    "2.5",
    "(",
    ")",
    "and",
    "or",
    "not",
    "<",
    "==",
    "+",
    "-",
    "/",
    "min",
    ",",
    '"t"',
    ".",
]


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join)))
@example("((" * 400)
@example("-" * MAX_LENGTH)
@example("`" + "a" * 900)
def test_f08_reading_refuses_or_gives_a_rule_and_nothing_else(text):
    began = time.process_time()
    try:
        rule = parse(text)
    except Invalid:
        return
    with contextlib.suppress(NoAnswer):
        rule.value(dict.fromkeys(rule.names(), 1.0))
    assert time.process_time() - began < 2


NUMBERS = st.recursive(
    st.one_of(st.sampled_from(["AP50", "mAP"]), st.integers(0, 9).map(str), st.sampled_from(["0.5", "1e-3", ".25"])),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(" ".join),
        inner.map(lambda rule: f"({rule})"),
        inner.map(lambda rule: f"-({rule})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda three: "{}({}, {})".format(*three)),
    ),
    max_leaves=8,
)
ANSWERS = st.recursive(
    st.tuples(NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), NUMBERS).map(" ".join),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
        inner.map(lambda rule: f"not {rule}"),
        inner.map(lambda rule: f"({rule})"),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(ANSWERS, st.floats(-10, 10), st.floats(-10, 10))
def test_a_rule_says_what_python_says_of_the_same_text(text, first, second):
    names = {"AP50": first, "mAP": second, "min": min, "max": max}

    assert parse(text).value({"AP50": first, "mAP": second}) == eval(text, {"__builtins__": {}}, names)
