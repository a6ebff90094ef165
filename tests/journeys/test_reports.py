"""A script with SummaryWriter runs as it is, the agent is killed on the way, and the API has each point once."""

from __future__ import annotations

import time

import pytest

from tests.journeys.up import ROOT, call, first_admin, running, until

pytestmark = pytest.mark.journey
SCRIPT = ROOT / "tests" / "journeys" / "summary_writer.py"
OVER = {"stopped", "failed", "succeeded"}


@pytest.mark.long
def test_summary_writer_needs_no_change_and_a_killed_agent_loses_and_doubles_nothing(tmp_path):
    with running(tmp_path / "platform") as up:
        token = first_admin(up)

        def get(path):
            return call(up.url, token, "GET", path)[1]

        text = f"#!/usr/bin/env python\n{SCRIPT.read_text()}"
        job = call(up.url, token, "POST", "commands/", {"command": text, "name": "plain", "cpus": 1})[1]["id"]
        until(lambda: "Loss/train" in get(f"jobs/{job}/metrics/")["keys"], 120, "the first point")
        for _ in range(4):
            assert up.kill("agent")
            time.sleep(1.5)  # a little further, then once more
        until(lambda: get(f"jobs/{job}/")["state"] in OVER, 120, "the end of the program")
        until(
            lambda: len(get(f"jobs/{job}/metrics/?key=Loss/train")["series"]["Loss/train"]) == 60, 60, "the last point"
        )
        curve = get(f"jobs/{job}/metrics/?key=Loss/train")["series"]["Loss/train"]
        shown = get(f"jobs/{job}/media/")["results"]

    assert [step for step, _value in curve] == list(range(60))
    assert curve[-1][1] < curve[0][1]
    assert sorted((row["kind"], row["step"]) for row in shown) == [
        (kind, step) for kind in ("histogram", "image") for step in (0, 20, 40)
    ]
