"""Curves of long runs: python -m tests.bench.curves [runs] [points].

Each run reports one key. CPU time of this process: taking in 1,000 lines of metrics.jsonl, one curve thinned for a
page, the curves of all runs, all of them on one grid as a comparison answers. Everything happens in a folder of its
own, which is removed.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.running import environment

LINES, ROUNDS = 1000, 7


def main(argv: list[str]) -> int:
    runs, points = (int(word) for word in [*argv, *("20", "100000")[len(argv) :]][:2])
    with tempfile.TemporaryDirectory(prefix="aip-bench-") as folder:
        root = Path(folder)
        os.environ.update(environment(root))

        import django

        django.setup()
        from tests import migrated

        migrated.begin(root)
        _measure(root, runs, points)
    return 0


def _measure(root: Path, runs: int, points: int) -> None:
    from tests.factories import people, work
    from workers.core.models import Curve, VirtualCluster
    from workers.jobs.output import metrics

    cluster = VirtualCluster.objects.get(name="default")
    owner = people.user("bench", cluster=cluster)
    jobs = [work.job(owner, cluster, name=f"run{n}", state="running") for n in range(runs)]
    taken = []
    for number, job in enumerate(jobs):
        attempt = job.attempts.get()
        with work.run_dir(job).metrics.open("w") as file:
            for begin in range(0, points, LINES):
                steps = range(begin, begin + LINES)
                rows = ({"step": step, "time": 1.7e9 + step, "train/loss": 1 / (step + 1 + number)} for step in steps)
                file.write("".join(json.dumps(row) + "\n" for row in rows))
                file.flush()
                if number == 0:
                    taken.append(_cpu_ms(partial(metrics.ingest, attempt)))
        metrics.ingest(attempt, at_most=metrics.MAX_BYTES)
    kept = sum(path.stat().st_size for path in root.joinpath("curves").rglob("*.points"))
    assert sum(Curve.objects.values_list("count", flat=True)) == runs * points
    one = statistics.median(_cpu_ms(lambda: metrics.curves(jobs[0])) for _round in range(ROUNDS))
    every = statistics.median(_cpu_ms(lambda: [metrics.curves(job) for job in jobs]) for _round in range(ROUNDS))
    compared = statistics.median(_cpu_ms(lambda: _compared(jobs)) for _round in range(ROUNDS))
    print(f"{runs} runs of {points:,} points, CPU time of this process")
    print(f"  taking in {LINES:,} lines       p50 {statistics.median(taken):.1f} ms")
    print(f"  bytes a point               {kept / runs / points:.0f}")
    print(f"  one curve, thinned          {one:.1f} ms")
    print(f"  the curves of all runs      {every:.0f} ms")
    print(f"  compared on one grid        {compared:.0f} ms")


def _compared(jobs: list[Any]) -> str:
    from training.experiments import comparison
    from training.experiments import comparison_api as api
    from training.experiments.models import Run

    rows = [Run(pk=job.pk, job=job) for job in jobs]
    return json.dumps(api.grid_out("train/loss", [row.pk for row in rows], comparison.curves(rows, "train/loss")))


def _cpu_ms(act: Callable[[], object]) -> float:
    begun = time.process_time()
    act()
    return 1000 * (time.process_time() - begun)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
