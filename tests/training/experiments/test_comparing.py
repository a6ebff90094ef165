"""Trainings beside each other: figures, parameters and curves, by page and API alike."""

from __future__ import annotations

import json
from datetime import timedelta

import numpy as np
import pytest

from aiplatform.lib.errors import Invalid, NotFound
from tests.factories import curves, work
from tests.factories import training as factory
from training.experiments import comparison, records
from training.experiments.models import Run, RunCurve
from workers.core.models import Attempt
from workers.jobs.output import point_files

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
API = "/api/v1/training/comparison/"


@pytest.fixture
def two(alice, machine):
    """Runs of a training that was restored and of one that was not."""
    data = factory.version(alice, "digits", task="classification")
    first = factory.training(alice, data=data, name="first", state="running", preset="classify", params={"lr": 0.1})
    second = factory.training(alice, data=data, name="second", state="running", preset="classify", params={"lr": 0.2})
    begun = first.job.attempts.get()
    curves.report(begun, "val/accuracy", [(1, 0.2), (2, 0.9), (3, 0.1)])
    Attempt.objects.filter(pk=begun.pk).update(ended_at=work.now())
    again = Attempt.objects.create(job=first.job, number=2)
    curves.report(again, "val/accuracy", [(3, 0.5), (4, 0.6)])
    curves.report(second.job.attempts.get(), "val/accuracy", [(1, 0.3)])
    curves.report(second.job.attempts.get(), "train/loss", [(1, 2.5)])
    return [first.job.run, second.job.run]


def test_comparison_takes_the_attempts_of_a_run_together(two):
    first, second = comparison.figures(two)

    assert first["val/accuracy"] == comparison.Figure(5, 4, 0.6, 0.1, 3, 0.9, 2)
    assert comparison.keys([first, second]) == ["val/accuracy", "train/loss"]


def test_comparison_lets_a_newer_attempt_win_from_where_it_began(two):
    grid = comparison.curves(two, "val/accuracy")

    assert grid.x.tolist() == [1, 2, 3, 4]
    assert grid.lines[0].mean.tolist() == [0.2, 0.9, 0.5, 0.6]
    assert grid.lines[1].points == 1


def test_comparison_by_time_shows_what_all_attempts_used(two):
    for attempt, minute in zip(two[0].job.attempts.order_by("number"), (0, 10), strict=True):
        moment = work.now() + timedelta(minutes=minute)
        curves.report(attempt, "system/cpu", [(0, 50.0 + minute, moment), (30, 50.0, moment + timedelta(seconds=30))])

    grid = comparison.curves(two[:1], "system/cpu", axis="time", width=20)

    assert (grid.lines[0].points, np.nanmax(grid.lines[0].high)) == (4, 60)
    assert grid.x[-1] > 570


def test_comparison_puts_what_differs_first(two):
    rows = comparison.rows(two)

    assert [(row.name, row.values) for row in rows if row.differs] == [("lr", (0.1, 0.2))]
    assert next(row for row in rows if row.name == "preset").values == ("classify", "classify")


def test_comparison_hides_secrets_of_own_code(alice, machine, code):
    data = factory.version(alice, "digits", task="classification")
    own = factory.training(alice, data=data, code=code, start_file="train.py", params={"api_key": "verysecret", "n": 1})

    values = {row.name: row.values for row in comparison.rows([own.job.run])}

    assert "verysecret" not in str(values)
    assert values["n"] == (1,)


@pytest.mark.parametrize(
    ("asked", "said"),
    [({"axis": "moon"}, "axis must be one of"), ({"width": 1}, "width must be"), ({"span": (2.0, 1.0)}, "from and to"),
     ({"span": (float("nan"), 1.0)}, "from and to")],
)  # fmt: skip
def test_comparison_refuses_what_is_no_part_of_an_axis(two, asked, said):
    with pytest.raises(Invalid, match=said):
        comparison.curves(two, "val/accuracy", **asked)


def test_comparison_is_of_runs_that_one_sees(two, bob, alice):
    numbers = [run.pk for run in two]

    with pytest.raises(NotFound, match=f"Run {numbers[0]}, {numbers[1]}"):
        comparison.chosen(bob, numbers)
    with pytest.raises(Invalid, match="at most 20"):
        comparison.chosen(alice, range(21))
    assert comparison.chosen(alice, [*reversed(numbers), numbers[0]]) == list(reversed(two))
    assert comparison.chosen(alice, [numbers[1]], trainings=[run.training.pk for run in two]) == list(reversed(two))
    with pytest.raises(NotFound, match="Training 99 not found"):
        comparison.chosen(alice, [], trainings=[99])


def test_comparison_takes_a_run_without_a_job_and_those_that_others_show(two, bob):
    elsewhere = Run.objects.create(owner=bob, name="laptop", state="running")
    records.set_params(elsewhere, {"lr": "0.3", "optimizer": "adam"})
    point_files.path(f"run-{elsewhere.pk}", 1, "val/accuracy").parent.mkdir(parents=True)
    point_files.write(point_files.path(f"run-{elsewhere.pk}", 1, "val/accuracy"), 0, [(1, 0.7, 1e9), (2, 0.8, 1e9)])
    RunCurve.objects.create(
        run=elsewhere, key="val/accuracy", count=2, step=2, value=0.8, at=work.now(),
        lowest=0.7, lowest_step=1, highest=0.8, highest_step=2,
    )  # fmt: skip
    Run.objects.filter(pk=two[0].pk).update(visibility="public")

    runs = comparison.chosen(bob, [elsewhere.pk, two[0].pk])

    assert comparison.figures(runs)[0]["val/accuracy"].highest == 0.8
    assert comparison.curves(runs, "val/accuracy").lines[0].mean.tolist()[:2] == [0.7, 0.8]
    assert next(row.values for row in comparison.rows(runs) if row.name == "lr") == (0.3, 0.1)


def test_comparison_api_gives_figures_and_curves(api, two):
    numbers = [run.pk for run in two]

    found = api.get(API, {"run": numbers}).json()
    (grid,) = api.get(f"{API}curves/", {"run": numbers, "key": "val/accuracy", "axis": "time", "width": 2}).json()
    refused = api.get(f"{API}curves/", {"run": numbers})
    wrong = api.get(f"{API}curves/", {"run": numbers, "key": "a", "from": "x"})

    assert [run["name"] for run in found["runs"]] == ["first", "second"]
    assert found["rows"][0] == {"name": "lr", "differs": True, "values": [0.1, 0.2]}
    assert (grid["key"], [run["points"] for run in grid["runs"]]) == ("val/accuracy", [4, 1])
    assert grid["runs"][1]["mean"][0] == 0.3
    assert (refused.status_code, wrong.status_code) == (400, 400)


def test_comparison_page_shows_them_or_says_what_to_do(as_alice, as_bob, as_anna, two):
    query = "&".join(f"run={run.pk}" for run in two)

    page = as_alice.get(f"/training/compare/?{query}").content.decode()
    nothing = as_alice.get("/training/compare/")

    assert page.count("data-run=") == 2
    assert "Accuracy on validation" in page
    assert "0.1 … 0.9" in page
    assert (nothing.status_code, "Select the runs to compare." in nothing.content.decode()) == (200, True)
    assert ">False<" not in page
    assert as_bob.get(f"/training/compare/?{query}").status_code == 404
    assert as_anna.get(f"/training/compare/?{query}").status_code == 403


@pytest.mark.parametrize(
    "asked", [{"from": "-1e308", "to": "1e308"}, {"from": "0", "to": "5e-324"}, {"axis": "time"}, {"width": 2}, {}]
)  # fmt: skip
def test_comparison_api_answers_about_the_largest_figures_there_are(api, two, asked):
    far = 2**62
    curves.report(two[0].job.attempts.get(number=2), "huge", [(-far, 1.7e308), (far, 1.7e308), (far, 1.7e308)])

    found = api.get(f"{API}curves/", {"run": two[0].pk, "key": "huge", **asked})

    assert found.status_code == 200
    (grid,) = found.json()
    assert len(grid["x"]) == len(grid["runs"][0]["mean"])


def test_comparison_page_names_keys_with_spaces_whole(as_alice, two):
    curves.report(two[1].job.attempts.get(), "top 5 (%) + loss", [(1, 0.4)])

    page = as_alice.get(f"/training/compare/?run={two[1].pk}").content.decode()

    listed = page.partition('<script id="compared-keys" type="application/json">')[2].partition("</script>")[0]
    assert json.loads(listed) == ["val/accuracy", "top 5 (%) + loss", "train/loss"]


def test_comparison_asks_the_database_no_more_for_more_runs(
    alice, as_alice, machine, two, django_assert_max_num_queries
):
    data = factory.version(alice, "cells", task="classification")
    more = [factory.training(alice, data=data, name=f"more{n}", state="running") for n in range(6)]
    for training in more:
        curves.report(training.job.attempts.get(), "val/accuracy", [(1, 0.4)])
    query = "&".join(f"run={run.pk}" for run in [*two, *(one.job.run for one in more)])
    as_alice.get("/training/")

    with django_assert_max_num_queries(14):
        as_alice.get(f"/training/compare/?{query}")


def test_comparison_by_epoch_puts_runs_of_unlike_batches_beside_each_other(two):
    """The first reports ten steps an epoch, the second a hundred; between two reports the epochs go on evenly."""
    curves.report(two[0].job.attempts.order_by("number").first(), "loss", [(5, 3.0), (10, 2.0), (20, 1.0), (25, 0.5)])
    curves.report(two[0].job.attempts.order_by("number").first(), "epoch", [(10, 1.0), (20, 2.0)])
    curves.report(two[1].job.attempts.get(), "loss", [(100, 4.0)])
    curves.report(two[1].job.attempts.get(), "train/epoch", [(100, 1.0)])

    grid = comparison.curves(two, "loss", axis="epoch", width=4)

    assert [round(float(x), 3) for x in grid.x] == [0.75, 1.25, 1.75, 2.25]  # from half an epoch to two and a half
    assert grid.lines[0].mean.tolist()[0] == 3.0
    assert grid.lines[0].mean.tolist()[3] == 0.75  # steps 20 and 25
    assert grid.lines[1].mean.tolist()[1] == 4.0


def test_comparison_by_epoch_leaves_out_who_reports_none(two, api):
    curves.report(two[0].job.attempts.order_by("number").first(), "epoch", [(1, 0.5), (2, 1.0)])

    answer = api.get(f"{API}curves/?run={two[0].pk}&run={two[1].pk}&key=val/accuracy&axis=epoch").json()

    assert [line["points"] for line in answer[0]["runs"]] == [4, 0]
    assert api.get(f"{API}curves/?run={two[0].pk}&key=val/accuracy&axis=moon").status_code == 400


def test_run_page_shows_key_metrics_and_what_differs_from_the_preset(as_alice, two):
    page = as_alice.get(f"/experiments/runs/{two[1].pk}/")

    params = page.context["params"]
    names = {name for group in params["defaults"] for name, _label, _value in group.rows}
    assert page.context["headline"] == [("val/accuracy", 0.3), ("train/loss", 2.5)]
    assert [(group.label, group.rows) for group in params["changed"]] == [
        ("Optimization", (("lr", "Learning rate", 0.2),))
    ]
    assert [group.label for group in params["defaults"]][:2] == ["Duration", "Data"]
    assert "lr" not in names
    assert "epochs" in names


def test_run_page_of_a_run_elsewhere_lists_its_parameters_without_groups(as_alice, alice):
    elsewhere = Run.objects.create(owner=alice, name="laptop", state="running")
    records.set_params(elsewhere, {"optimizer": "adam"})

    page = as_alice.get(f"/experiments/runs/{elsewhere.pk}/")

    assert page.context["params"] == {
        "changed": [comparison.ParamGroup("", (("optimizer", "optimizer", "adam"),))], "defaults": []
    }  # fmt: skip
    assert page.context["headline"] == []
