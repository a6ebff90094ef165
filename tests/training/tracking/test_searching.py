"""MLflow's language for searches: what it means for runs, and what it is refused for."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiplatform.lib.errors import Invalid
from tests.cases import case_table
from training.experiments.tracking import filters
from training.experiments.tracking.filters import Comparison

FULL = "metrics.acc > 0.9 and params.lr = '0.1' AND tags.x = \"y\" and attributes.status = 'FINISHED'"


def test_filter_is_read_as_mlflow_means_it():
    assert filters.parse(FULL) == [
        Comparison("metric", "acc", ">", 0.9),
        Comparison("param", "lr", "=", "0.1"),
        Comparison("tag", "x", "=", "y"),
        Comparison("attribute", "status", "=", "FINISHED"),
    ]
    assert filters.parse("metric.`val/f1 score` <= -1e-3") == [Comparison("metric", "val/f1 score", "<=", -0.001)]
    assert filters.parse("run_id in ('a', 'b')") == [Comparison("attribute", "run_id", "IN", ["a", "b"])]
    assert filters.parse("tags.a IS NOT NULL and params.\"b c\" is null") == [
        Comparison("tag", "a", "IS NOT NULL"), Comparison("param", "b c", "IS NULL"),
    ]  # fmt: skip
    assert filters.parse("tags.mlflow.parentRunId NOT IN ('x')")[0].key == "mlflow.parentRunId"
    assert filters.parse("  ") == []


@case_table(
    "text",
    ["metrics.a", "metrics.a >", "and", "metrics.a > 1 or metrics.b > 1", "a = 'b", "a = 'x'; --", "(a = 1)",
     "datasets.name = 'x'", "a in ()", "a in ('b'", "a not 'b'", "a is 'b'", "metrics.a > 1 and", "x" * 5000,
     " and ".join(["a = 'b'"] * 50)],
)  # fmt: skip
def test_filter_that_says_something_else_is_refused(text):
    with pytest.raises(Invalid):
        filters.parse(text)


@given(st.text(max_size=200))
def test_filter_of_any_text_is_read_or_refused(text):
    try:
        filters.parse(text)
        filters.parse_orders([text])
    except Invalid:
        pass


@given(st.text("ab%_", max_size=12), st.text("ab", max_size=12))
def test_like_means_what_sql_means(pattern, text):
    import re

    means = "".join({"%": ".*", "_": "."}.get(sign, sign) for sign in pattern)

    assert filters._is_like(text, pattern) == bool(re.fullmatch(means, text))


def test_like_takes_no_longer_for_a_pattern_made_to_be_slow():
    begun = time.process_time()

    assert not filters._is_like("a" * 6000, "%a" * 200 + "%b")

    assert time.process_time() - begun < 2


@pytest.fixture
def three(laptop):
    """Three runs: of growing accuracy, with a parameter and a tag each."""
    found = {}
    for number, (name, lr, kind) in enumerate([("one", "0.1", "a"), ("two", "0.2", "b%_[*"), ("three", "0.1", "B")]):
        uid = found[name] = laptop.made(
            name, tags=[{"key": "kind", "value": kind}], start_time=1_700_000_000_000 + number
        )
        params = [{"key": "lr", "value": lr}]
        metrics = [{"key": "val/acc", "value": 0.5 + number / 10, "timestamp": 1}]
        laptop.post("runs/log-batch", run_id=uid, params=params, metrics=metrics)
    laptop.post("runs/update", run_id=found["one"], status="FINISHED", end_time=1_700_000_100_000)
    laptop.post("runs/update", run_id=found["two"], status="FAILED")
    laptop.made("bare")
    return found


@pytest.mark.django_db
@pytest.mark.postgres
@case_table(
    ("text", "names"),
    [
        ("metrics.`val/acc` > 0.55", "two three"),
        ("metrics.`val/acc` != 0.5", "two three"),
        ("metrics.`val/acc` >= 0.5 and params.lr = '0.1'", "one three"),
        ("params.lr != '0.1'", "two"),
        ("params.lr IN ('0.2', '0.3')", "two"),
        ("params.lr NOT IN ('0.2')", "one three"),
        ("params.lr IS NULL", "bare"),
        ("tags.kind IS NOT NULL", "one two three"),
        ("tags.kind LIKE 'b%'", "two"),
        ("tags.kind ILIKE 'b%'", "two three"),
        ("tags.kind LIKE '__%_[*'", "two"),
        ("tags.kind LIKE 'b[*'", ""),
        ("tags.kind LIKE 'b\\%'", ""),
        ("attributes.status = 'FINISHED'", "one"),
        ("status != 'RUNNING'", "one two"),
        ("status IN ('RUNNING', 'FAILED')", "two three bare"),
        ("run_name = 'one'", "one"),
        ("run_name LIKE 't%'", "two three"),
        ("tags.`mlflow.runName` = 'three'", "three"),
        ("user_id = 'alice' and run_name != 'bare'", "one two three"),
        ("start_time < 1700000000001", "one"),
        ("end_time <= 1700000100000", "one"),
    ],
)
def test_search_finds_the_runs_of_a_filter(laptop, three, text, names):
    found = laptop.post("runs/search", experiment_ids=["0"], filter=text)["runs"]

    assert {run["info"]["run_name"] for run in found} == set(names.split())


@pytest.mark.django_db
@pytest.mark.postgres
@pytest.mark.parametrize(
    ("order", "names"),
    [
        (["metrics.`val/acc` DESC"], "three two one bare"),
        (["metrics.`val/acc` ASC"], "one two three bare"),
        (["params.lr", "start_time DESC"], "three one two bare"),
        (["attributes.start_time ASC"], "one two three bare"),
        (["run_name"], "bare one three two"),
        (["status", "run_name"], "two one bare three"),
        ([], "bare three two one"),
    ],
)
def test_search_gives_runs_in_the_order_asked_for(laptop, three, order, names):
    found = laptop.post("runs/search", experiment_ids=["0"], order_by=order)["runs"]

    assert " ".join(run["info"]["run_name"] for run in found) == names


@pytest.mark.django_db
def test_search_comes_in_pages(laptop, three):
    asked = {"experiment_ids": ["0"], "max_results": 3, "order_by": ["run_name"]}

    first = laptop.post("runs/search", **asked)
    second = laptop.post("runs/search", **asked, page_token=first["next_page_token"])

    assert [run["info"]["run_name"] for run in first["runs"] + second["runs"]] == ["bare", "one", "three", "two"]
    assert "next_page_token" not in second
    for token in ("x", "-1", "9" * 30):
        assert laptop.refused("POST", "runs/search", asked | {"page_token": token})[0] == 400


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text",
    ["owner__password LIKE 'x%'", "metrics.a > 'b'", "params.lr > 0.1", "attributes.nothing = 'x'", "status > 'A'",
     "metrics.a LIKE 'x'", "start_time > 1e300", "params.lr = 1"],
)  # fmt: skip
def test_search_refuses_what_it_does_not_know(laptop, text):
    asked = {"experiment_ids": ["0"], "filter": text}

    assert laptop.refused("POST", "runs/search", asked) == (400, "INVALID_PARAMETER_VALUE")


@pytest.mark.django_db
def test_search_finds_figures_of_jobs_by_their_newest_attempt(script):
    script.post("runs/log-metric", run_id=script.run.uid, key="acc", value=0.9)

    def found(text):
        return [
            run["info"]["run_name"] for run in script.post("runs/search", experiment_ids=["0"], filter=text)["runs"]
        ]

    assert found("metrics.acc > 0.8 and status = 'RUNNING'") == ["learn"]
    assert found("metrics.acc > 0.95") == []


@pytest.mark.django_db
def test_search_costs_as_many_queries_for_many_runs(laptop, three, django_assert_max_num_queries):
    for number in range(20):
        laptop.made(f"more {number}")

    with django_assert_max_num_queries(22):
        assert len(laptop.post("runs/search", experiment_ids=["0"])["runs"]) == 24
