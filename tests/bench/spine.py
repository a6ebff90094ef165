"""From submit to the user's process, and short jobs per second: python -m tests.bench.spine [latency jobs] [burst].

Real processes on this machine: broker, scheduler, agent, one Celery worker, supervisors in the best sandbox tier.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.running import environment, platform, wait_for

PROGRAM = "import time; print(repr(time.time()), flush=True)"


def main(argv: list[str]) -> int:
    """Print the table."""
    single, burst = (int(word) for word in (argv + ["30", "120"][len(argv) :])[:2])
    root = Path(tempfile.mkdtemp(prefix="aip-bench-"))
    os.environ.update(environment(root))
    os.environ["AIP_CPU_OVERCOMMIT"] = "8"

    import django

    django.setup()
    from tests.factories import people
    from workers.execution import tickets
    from workers.jobs import submission
    from workers.models import Job, VirtualCluster
    from workers.runs import RunDir
    from workers.states import FINAL

    def put(argv: list[str]) -> int:
        made = submission.submit(
            owner=owner, cluster=cluster, kind="command", name="bench", spec={"argv": argv}, cpus=0.5
        )
        return made.pk

    def all_ended(numbers: list[int]) -> bool:
        return Job.objects.filter(pk__in=numbers, state__in=FINAL).count() == len(numbers)

    with platform(root):
        cluster = VirtualCluster.objects.get_or_create(name="default")[0]
        owner = people.user("bench", cluster=cluster)
        time.sleep(5)  # Celery workers take a few seconds to import
        delays = []
        for _round in range(single):
            begun = time.time()
            number = put([sys.executable, "-S", "-c", PROGRAM])
            wait_for(lambda number=number: all_ended([number]), 60, f"job {number} did not end", 0.05)
            delays.append(float(RunDir.of(number, 1).log.read_text()) - begun)
        begun = time.time()
        numbers = [put(["/bin/true"]) for _ in range(burst)]
        submitted = time.time()
        wait_for(lambda: all_ended(numbers), 300, "the burst did not end", 0.05)
        ended = time.time()
    delays.sort()
    load = os.getloadavg()[0]
    print(f"spine on {os.cpu_count()} cores, sandbox tier {tickets.tier()[0]}, load of the machine {load:.1f}")
    p95 = delays[min(len(delays) - 1, int(0.95 * len(delays)))]
    print(f"  submit → user's process  p50 {statistics.median(delays):.3f} s  p95 {p95:.3f} s  ({single} jobs)")
    print("      reference: Slurm here 2.70 s default, 0.69 s tuned; wanted p50 ≤ 0.3, p95 ≤ 1")
    print(
        f"  short supervised jobs    {burst / (ended - begun):.1f}/s  ({burst} jobs, {submitted - begun:.1f} s to put)"
    )
    print("      reference: Slurm here 10.6/s default, 30.7/s tuned; wanted ≥ 12")
    shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
