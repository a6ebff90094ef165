"""What reporting costs a program, and how soon it shows: python -m tests.bench.reporting [seconds].

First in a process of its own, paced to 1,000 points a second: CPU time of the reporting alone in percent of a core, by
the SDK (lines of one, and of ten points) and, for comparison, by PyTorch's SummaryWriter; and that of taking them in
again. Then on a platform of its own, started as a person starts it: a job reports the clock, and a reader asks the API
until the value is there. Everything happens in a folder of its own, which is removed.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.journeys.up import call, first_admin, running, until

RATE = 1000
ROOT = Path(__file__).parents[2]

PACED = """
import os, sys, time
seconds, each = float(sys.argv[1]), int(sys.argv[2])
{prepare}
spent, begun, step = 0.0, time.perf_counter(), 0
while time.perf_counter() - begun < seconds:
    due = int((time.perf_counter() - begun) * 1000 / each)
    before = time.process_time()
    while step < due:
        {report}
        step += 1
    spent += time.process_time() - before
    time.sleep(0.01)
{end}
print(spent / (step * each / 1000) * 100)  # percent of a core at 1,000 points a second
"""
SDK = PACED.format(
    prepare="from aip import report\nnames = [f'train/loss{i}' for i in range(each)]\nreport(0, {'warm': 1})",
    report="report(step, dict.fromkeys(names, 0.1 + step))",
    end="",
)
WRITER = PACED.format(
    prepare="from torch.utils.tensorboard import SummaryWriter\nboard = SummaryWriter('runs')",
    report="board.add_scalar('train/loss', 0.1 + step, step)",
    end="board.close(); spent = time.process_time() - before0",
).replace("spent, begun", "before0 = time.process_time()\nspent, begun")  # its thread writes: all of it counts

CLOCK_SDK = """python - <<'END'
import time
from aip import report, text
for step in range(60):
    report(step, {"clock": time.time()})
    time.sleep(0.25)
END
"""
CLOCK_WRITER = """python - <<'END'
import time
from torch.utils.tensorboard import SummaryWriter
board = SummaryWriter()
for step in range(60):
    board.add_scalar("clock", time.time() % 100000, step)
    board.flush()
    time.sleep(0.25)
END
"""


def cost(program: str, seconds: float, each: int) -> float:
    """Percent of a core that reporting 1,000 points a second takes."""
    with tempfile.TemporaryDirectory(prefix="aip-bench-") as place:
        package = Path(place) / "aip"
        package.mkdir()
        presets = ROOT / "training" / "presets"
        for name in ("run.py", "checkpoints.py", "media.py"):
            shutil.copy(presets / name, package)
        (package / "__init__.py").write_text("from .run import *\n")
        environment = {**os.environ, "AIP_METRICS_FILE": f"{place}/metrics.jsonl", "AIP_OUTPUT_DIR": place}
        command = [sys.executable, "-W", "ignore", "-c", program, str(seconds), str(each)]
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=True)
        return float(done.stdout)


def delays(url: str, token: str, script: str, key: str) -> list[float]:
    """Seconds from the moment a value was reported to the first answer of the API that has it."""

    def get(path: str) -> dict:
        return call(url, token, "GET", path)[1]

    job = call(url, token, "POST", "commands/", {"command": script, "name": "clock", "cpus": 1})[1]["id"]
    until(lambda: get(f"jobs/{job}/")["state"] not in ("queued", "assigned", "starting"), 60, "the start of the job")
    known, found = 0, []
    while get(f"jobs/{job}/")["state"] == "running":
        answer = get(f"jobs/{job}/metrics/?key={key}")
        times, now = answer["times"].get(key, []), time.time()
        if known:
            found += [now - moment for moment in times[known:]]
        known = len(times)
        time.sleep(0.05)
    return found


def main(seconds: float = 5.0) -> None:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {seconds:.0f} s each, {RATE} points a second")
    for words, program, each in (
        ("SDK, a point a line", SDK, 1), ("SDK, ten points a line", SDK, 10), ("PyTorch's SummaryWriter", WRITER, 1),
    ):  # fmt: skip
        print(f"{words:<48} {cost(program, seconds, each):5.2f} % of a core")
    with tempfile.TemporaryDirectory(prefix="aip-bench-") as place, running(Path(place) / "platform") as up:
        token = first_admin(up)
        for words, script, key in (
            ("SDK, reported → in the API", CLOCK_SDK, "clock"),
            ("SummaryWriter, flushed → in the API", CLOCK_WRITER, "clock"),
        ):
            found = sorted(delays(up.url, token, script, key))
            p95 = found[int(len(found) * 0.95)]
            print(f"{words:<48} p50 {statistics.median(found):.2f} s, p95 {p95:.2f} s ({len(found)} points)")


if __name__ == "__main__":
    main(*(float(argument) for argument in sys.argv[1:2]))
