"""A script nobody wrote for the platform: sent with its folder, killed around, brought back with its exit code."""

from __future__ import annotations

import pytest

from tests.journeys.terminal import aip
from tests.journeys.up import call, first_admin, running, until

pytestmark = pytest.mark.journey

COUNT = """\
import os, pathlib, sys, time
print("token", os.environ["HUB_TOKEN"], "of", pathlib.Path.cwd().name, flush=True)
for number in range(40):
    print("line", number, flush=True)
    time.sleep(0.25)
pathlib.Path("runs").mkdir(exist_ok=True)
pathlib.Path("runs", "result.txt").write_text(str(number))
sys.exit(int(sys.argv[1]))
"""


def test_aip_run_survives_kills_and_ends_with_the_commands_own_code(tmp_path):
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "count.py").write_text(COUNT)
    (project / ".gitignore").write_text("*.bin\n")
    (project / "big.bin").write_bytes(bytes(1 << 20))
    with running(tmp_path / "platform") as up:
        token = first_admin(up)
        sent = ["--secret", "HUB_TOKEN=open-sesame", "--output-path", "runs", "--cpus", "0.5"]
        client = aip(up.url, token, project, "run", *sent, "--", "python", "src/count.py", "3")

        def state() -> str:
            rows = call(up.url, token, "GET", "jobs/?kind=command")[1]["results"]
            return rows[0]["state"] if rows else ""

        until(lambda: state() == "running", 60, "the command did not start")
        for part in ("agent", "scheduler", "aiplatform.cli.web", "celery"):
            assert up.kill(part), f"there is no process {part} to kill"
        said, told = client.communicate(timeout=180)
        answer = call(up.url, token, "GET", "jobs/?kind=command")[1]["results"]

    assert client.returncode == 3, told
    lines = said.splitlines()
    assert lines[0] == "token *********** of code"
    assert lines[1:] == [f"line {number}" for number in range(40)]  # every one, once
    assert (project / "aip-outputs" / str(answer[0]["id"]) / "result.txt").read_text() == "39"
    assert [row["attempt"] for row in answer] == [1]
    snapshot = next((tmp_path / "platform" / "code").iterdir())
    assert sorted(path.name for path in snapshot.iterdir()) == [".gitignore", "src"]
