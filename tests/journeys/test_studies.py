"""A study while everything that carries it is killed: as many trials as were asked for, each with one job."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from typing import Any

import pytest

from tests.journeys.up import Up, call, first_admin, running, until

pytestmark = pytest.mark.journey
TRIALS = int(os.environ.get("AIP_STUDY_TRIALS", "20"))
KILLS = int(os.environ.get("AIP_STUDY_KILLS", "8"))
EVERYTHING = ("aiplatform.cli.web", "work@node1", "cpu@node1", "manage.py\0scheduler", "manage.py\0agent")
#: (x − 1)² + y², better with each of five points, in the run contract's own files and no package.
QUADRATIC = """python3 - <<'END'
import json, os, time
given = json.load(open(os.environ["AIP_PARAMS"]))
for point in range(1, 6):
    with open(os.environ["AIP_METRICS_FILE"], "a") as file:
        loss = (given["x"] - 1) ** 2 + given["y"] ** 2 + 1 / point
        file.write(json.dumps({"step": point, "loss": loss}) + "\\n")
    time.sleep(0.3)
END"""


def _rows(up: Up, question: str) -> list[dict[str, Any]]:
    with contextlib.closing(sqlite3.connect(f"file:{up.folder / 'aiplatform.sqlite3'}?mode=ro", uri=True)) as base:
        base.row_factory = sqlite3.Row
        return [dict(row) for row in base.execute(question).fetchall()]


@pytest.mark.long
def test_study_makes_each_of_its_trials_once_whatever_is_killed_and_whenever(tmp_path):
    with running(tmp_path / "data", AIP_CPU_OVERCOMMIT="4") as up:
        token, chance = first_admin(up), random.Random(7)
        body = {
            "name": "hunt",
            "training": {"command": QUADRATIC, "gpus_per_node": 0, "cpus": 0.2},
            "space": ["x = -4 .. 4.0", "y = -4 .. 4.0"],
            "objectives": [{"key": "loss", "direction": "minimize"}],
            "pruner": {"name": "median", "startup": 4, "warmup": 1},
            "max_trials": TRIALS,
            "at_once": 5,
            "seed": 3,
        }
        status, study = call(up.url, token, "POST", "studies/", body)
        assert status == 201, study

        for number in range(KILLS):
            time.sleep(chance.uniform(0.2, 1.5))  # the moment of the kill, not a wait for anything
            word = EVERYTHING[number % len(EVERYTHING)]
            until(lambda word=word: up.kill(word), 60, f"A start of {word}")
        until(lambda: call(up.url, token, "GET", "me/")[0] == 200, 60, "The web server's return")
        over = lambda: call(up.url, token, "GET", f"studies/{study['id']}/")[1]["state"] in ("done", "failed")  # noqa: E731 - a name for one line
        until(over, 150, "The end of the study")

        trials = _rows(up, "SELECT number, state, training_id, pruned_attempt FROM studies_trial ORDER BY number")
        jobs = _rows(up, "SELECT id, name, state FROM workers_job")
        assert [row["number"] for row in trials] == list(range(TRIALS))
        assert len({row["training_id"] for row in trials}) == TRIALS
        assert sorted(row["name"] for row in jobs) == sorted(f"hunt_{number}" for number in range(TRIALS))
        assert {row["state"] for row in trials} <= {"complete", "pruned"}, trials
        assert any(row["state"] == "pruned" for row in trials), "nothing was pruned"
        assert all(bool(row["pruned_attempt"]) == (row["state"] == "pruned") for row in trials), trials
        found = call(up.url, token, "GET", f"studies/{study['id']}/")[1]
        assert found["state"] == "done"
        assert found["best"]["values"][0] < 4
