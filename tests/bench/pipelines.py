"""What the pipeline engine costs: `python -m tests.bench.pipelines [--runs 1000] [--items 500]`.

Rows of a throw-away SQLite database, no machine: jobs are queued, and end as rows. Printed are what a sweep over many
open runs costs where nothing is due and where one job of each has ended, what one wake-up costs, a for-each of many
items from its first to its last row, and what the engine adds to each step of a chain beside submitting its job alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = 20


def main() -> None:
    """Make rows, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--items", type=int, default=500)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as scratch:
        from tests import migrated
        from tests.running import environment

        root = Path(scratch)
        os.environ.update(environment(root, gpus=0))
        import django

        django.setup()
        migrated.begin(root)
        from tests.bench.pipeline_rows import Bench

        bench = Bench()
        print(f"{asked.runs} open runs of {STEPS} steps", flush=True)
        bench.open_runs(asked.runs, STEPS)
        say("sweep, nothing due", taken(bench.sweep, 5), "≤ 200 ms")
        one = bench.end_one_of_each(min(100, asked.runs))
        say("wake-up of one run", [taken(lambda run=run: bench.wake(run), 1)[0] for run in one], "≤ 5 ms")
        bench.end_one_of_each(asked.runs)
        say("sweep, one job of each has ended", taken(bench.sweep, 1), "")
        alone, with_engine = bench.alone(STEPS), bench.chain(STEPS)
        added = (with_engine - alone) / STEPS
        print(
            f"  chain of {STEPS}: {1e3 * with_engine / STEPS:.1f} ms a step, the job alone {1e3 * alone / STEPS:.1f} ms"
        )
        print(f"  the engine adds {1e3 * added:.1f} ms a step (≤ 50 ms)")
        spent, wakes = bench.each(asked.items)
        print(f"  for-each of {asked.items}: {spent:.2f} s in {wakes} wake-ups, {1e3 * spent / wakes:.1f} ms each")
    print(f"{os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}")


def taken(act: Callable[[], Any], times: int) -> list[float]:
    """Seconds of each of so many calls."""
    found = []
    for _time in range(times):
        begun = time.perf_counter()
        act()
        found.append(time.perf_counter() - begun)
    return found


def say(what: str, seconds: list[float], goal: str) -> None:
    """One line of figures."""
    ordered = sorted(seconds)
    worst = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    print(f"  {what}: p50 {1e3 * statistics.median(seconds):.1f} ms, p95 {1e3 * worst:.1f} ms {goal}", flush=True)


if __name__ == "__main__":
    main()
