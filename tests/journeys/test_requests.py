"""Many jobs of one request on a running platform: an array, retries, jobs that follow others, a template."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.journeys.terminal import aip
from tests.journeys.up import call, first_admin, running, until
from tests.running import printed

pytestmark = pytest.mark.journey

SAY = "import os; print(*(os.environ.get(name, '-') for name in ('AIP_ARRAY_INDEX', 'RANK', 'WORLD_SIZE')))"


@pytest.mark.long
def test_array_retries_followers_launchers_and_a_template(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "say.py").write_text(SAY)
    template = {"request": {"command": "echo hello {{ who }}", "cpus": 0.5}, "parameters": [{"name": "who"}]}
    (project / "hello.json").write_text(json.dumps(template))
    with running(tmp_path / "platform") as up:
        token = first_admin(up)

        def told(*words: str) -> tuple[int, str]:
            client = aip(up.url, token, project, *words)
            said, _words = client.communicate(timeout=180)
            return client.returncode or 0, said

        def job(number: str) -> dict[str, str]:
            return call(up.url, token, "GET", f"jobs/{number}/")[1]

        light = ("run", "--cpus", "0.5", "--no-outputs")
        array = told(*light, "--array", "3-6%2", "--", "python", "say.py")[1].strip()
        ranks = told(*light, "--launcher", "processes", "--processes", "2", "--", "python", "say.py")
        retried = told(*light, "--no-code", "--retries", "2", "--retry-pause", "1", "--", "test $AIP_ATTEMPT -ge 3")
        failing = told(*light, "--no-code", "-d", "--", "sleep 2; false")[1].strip()
        in_vain = told(*light, "--no-code", "-d", "--after", failing, "--", "true")[1].strip()
        after_end = told(*light, "--no-code", "--after-end", failing, "--", "echo after the end")
        saved = told("templates", "save", "hello", "--file", "hello.json")
        hello = told("run", "--no-outputs", "--template", "hello", "--set", "who=world")
        torchrun = told(
            *light, "--no-code", "--launcher", "torchrun", "--processes", "2", "--", "echo $RANK/$WORLD_SIZE"
        )
        until(lambda: job(in_vain)["state"] == "stopped", 60, "the follower was not stopped")
        states = call(up.url, token, "GET", f"arrays/{array}/")[1]["states"]
        logs = sorted(_log(tmp_path / "platform", row["id"]) for row in _jobs_of(up.url, token, array))

    assert states == {"succeeded": 4}
    assert logs == [f"{number} - -\n" for number in range(3, 7)]
    assert (ranks[0], sorted(ranks[1].split("\n"))) == (0, ["", "[rank0]: - 0 2", "[rank1]: - 1 2"])
    assert retried[0] == 0
    assert after_end == (0, "after the end\n")
    assert (saved[0], hello) == (0, (0, "hello world\n"))
    assert torchrun[0] == 0
    assert {"0/2", "1/2"} <= set(torchrun[1].split())


def _jobs_of(url: str, token: str, array: str) -> list[dict[str, int]]:
    return call(url, token, "GET", f"jobs/?array={array}")[1]["results"]


def _log(folder: Path, job: int) -> str:
    return printed(folder / "jobs" / str(job) / "1" / "log.txt")
