"""Runs at the command line, against the real API."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.factories import curves, work
from tests.factories import training as factory
from training.experiments import annotating
from training.experiments.models import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def three(alice):
    work.node(cores=4)
    data = factory.version(alice, "digits", task="classification")
    made = []
    for rate in (0.01, 0.03, 0.1):
        job = factory.training(
            alice, data=data, name=f"rate {rate}", state="running", preset="classify", params={"lr": rate}
        )
        curves.report(job.job.attempts.get(), "val/accuracy", [(1, 0.9), (2, 0.5 + rate)])
        made.append(job.job.run)
    return made


def test_runs_are_found_by_what_they_reached(real_aip, alice, three, capfd):
    words = ("runs", "list", "best(val/accuracy) > 0.8 and params.lr < 0.05", "--column", "params.lr")
    assert real_aip(alice, *words, "--sort", "params.lr") == 0
    printed = capfd.readouterr().out.splitlines()
    assert real_aip(alice, *words, "--sort=-params.lr", "--json", "--limit", 1) == 0
    rows = json.loads(capfd.readouterr().out)
    assert real_aip(alice, "runs", "list", "params.lr >") == 2
    refused = capfd.readouterr()

    assert [line.split()[:3] for line in printed[1:]] == [
        [str(three[0].pk), "rate", "0.01"], [str(three[1].pk), "rate", "0.03"],
    ]  # fmt: skip
    assert [(row["id"], row["values"]) for row in rows] == [(three[1].pk, {"params.lr": 0.03})]
    assert refused.out == ""
    assert "filter" in refused.err


def test_table_for_a_spreadsheet_begins_no_formula(real_aip, alice, three, capfd):
    Run.objects.create(owner=alice, name="=1+1", state="succeeded")

    assert real_aip(alice, "runs", "list", "--csv", "--column", "params.lr", "--column", "last(val/accuracy)") == 0

    rows = list(csv.reader(io.StringIO(capfd.readouterr().out)))

    assert rows[0] == ["id", "name", "params.lr", "last(val/accuracy)"]
    assert rows[1][1:] == ["'=1+1", "", ""]
    assert rows[2] == [str(three[2].pk), "rate 0.1", "0.1", "0.6"]


def test_saved_view_gives_filter_columns_and_order(real_aip, alice, three, capfd):
    query = {"filter": "params.lr > 0.02", "columns": ["params.lr"], "sort": "params.lr"}
    annotating.save_view(alice, name="fast ones", query=query)

    assert real_aip(alice, "runs", "list", "--view", "fast ones", "--json") == 0
    rows = json.loads(capfd.readouterr().out)
    assert real_aip(alice, "runs", "views") == 0
    listed = capfd.readouterr().out
    assert real_aip(alice, "runs", "list", "--view", "slow ones") == 1
    refused = capfd.readouterr().err

    assert [row["id"] for row in rows] == [three[1].pk, three[2].pk]
    assert "fast ones" in listed
    assert "params.lr > 0.02" in listed
    assert "aip runs views" in refused


def test_runs_are_marked_shown_and_compared(real_aip, alice, bob, three, capfd):
    numbers = [run.pk for run in three]
    assert real_aip(alice, "runs", "change", *numbers, "--tag", "golden=1", "--star", "--notes", "Good ones") == 0
    assert real_aip(alice, "runs", "change", numbers[0], "--archive", "--no-tag", "golden") == 0
    assert real_aip(alice, "runs", "change", numbers[0]) == 2
    capfd.readouterr()
    assert real_aip(alice, "runs", "show", numbers[1]) == 0
    shown = capfd.readouterr().out
    assert real_aip(alice, "runs", "compare", *numbers) == 0
    compared = capfd.readouterr().out
    assert real_aip(alice, "runs", "columns") == 0
    known = capfd.readouterr().out
    assert real_aip(alice, "runs", "list", "--json", "--column", "tags") == 0
    listed = json.loads(capfd.readouterr().out)

    assert [word for word in ("golden=1", "Good ones", "0.53 (0.53 … 0.9)") if word not in shown] == []
    assert [word for word in ("0.01", "val/accuracy") if word not in compared] == []
    assert "params.lr" in known
    assert [row["id"] for row in listed] == [numbers[2], numbers[1]]
    assert not Run.objects.get(pk=numbers[0]).tags.exists()
    assert real_aip(bob, "runs", "show", numbers[1]) == 5
    assert real_aip(bob, "runs", "change", numbers[1], "--star") != 0
