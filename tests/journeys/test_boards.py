"""TensorBoard on what a program left: the engine is built, the job starts, the curve is there, behind its port."""

from __future__ import annotations

import contextlib
import json
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.journeys.up import ROOT, Up, call, first_admin, running, until

INDEX = os.environ.get("AIP_ENGINE_INDEX", "")
pytestmark = [
    pytest.mark.journey,
    pytest.mark.skipif(not INDEX, reason="AIP_ENGINE_INDEX names no place that has the wheels of TensorBoard"),
]
WRITER = ROOT / "tests" / "journeys" / "event_writer.py"
OVER = {"stopped", "failed", "succeeded"}


def answer(up: Up, token: str, board: int, path: str) -> object:
    """What TensorBoard says through its port; nothing before it does."""
    address = f"http://127.0.0.1:{up.ports_port}/jobs/{board}/tensorboard/{path}"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=30) as said:
        return json.load(said)
    return None


@pytest.mark.long
def test_i09_board_shows_the_curve_of_its_job_and_nothing_else(tmp_path: Path):
    with running(tmp_path / "platform", AIP_ENGINE_INDEX=INDEX) as up:
        token = first_admin(up)

        def state(job: int) -> str:
            return call(up.url, token, "GET", f"jobs/{job}/")[1]["state"]

        text = f"#!/usr/bin/env python\n{WRITER.read_text()}"
        job = call(up.url, token, "POST", "commands/", {"command": text, "name": "run 7", "cpus": 0.5})[1]["id"]
        until(lambda: state(job) in OVER, 60, "the end of the program")
        status, made = call(up.url, token, "POST", f"jobs/{job}/board/")
        board = made["id"]
        until(lambda: state(board) in {"running", *OVER}, 240, "the engine and the start")
        runs = until(lambda: answer(up, token, board, "data/runs"), 90, "an answer with runs")
        tags = answer(up, token, board, "data/plugin/scalars/tags")
        points = answer(up, token, board, "data/plugin/scalars/scalars?run=logs&tag=loss")
        call(up.url, token, "POST", f"jobs/{board}/stop/")
        until(lambda: state(board) in OVER, 60, "the end of the board")

    assert (status, runs) == (201, ["logs"])
    assert list(tags["logs"]) == ["loss"]
    assert [point[2] for point in points] == pytest.approx([1 / (step + 1) for step in range(50)])
