"""From submit to the user's process, and short jobs per second: python -m tests.bench.spine [latency jobs] [burst].

Real processes on this machine: broker, scheduler, agent, one Celery worker, supervisors in the best sandbox tier.
What each of them computes per job of the burst is printed too: seconds of a clock depend on who else is on the machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.running import Platform, environment, platform, printed, wait_for
from workers.supervisor import processes

PROGRAM = "import time; print(repr(time.time()), flush=True)"
_PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")


class Orphans:
    """Adopts the supervisors, which leave whoever started them, and adds up what they and their jobs computed."""

    def __init__(self, here: Platform) -> None:
        self.here, self.cpu_s = here, 0.0

    def reap(self) -> None:
        ours = {part.process.pid for part in self.here.parts.values() if part.process}
        for pid in set(processes.children(os.getpid())) - ours:
            with contextlib.suppress(ChildProcessError):
                reaped, _status, used = os.wait4(pid, os.WNOHANG)
                self.cpu_s += used.ru_utime + used.ru_stime if reaped else 0.0

    @contextlib.contextmanager
    def reaped(self) -> Iterator[None]:
        over = threading.Event()

        def again() -> None:
            while not over.wait(0.05):
                self.reap()

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        thread = threading.Thread(target=again, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def used(self) -> dict[str, float]:
        """CPU seconds by process so far, each with all that it started; the bench itself is who submits."""
        found = {
            name: sum(map(_cpu_s, [part.pid, *processes.descendants(part.pid)]))
            for name, part in self.here.parts.items()
            if part.pid
        }
        times = os.times()
        return found | {"supervisors and programs": self.cpu_s, "who submits": times.user + times.system}


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:  # it ended meanwhile
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


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

    with platform(root) as here, (orphans := Orphans(here)).reaped():
        cluster = VirtualCluster.objects.get_or_create(name="default")[0]
        owner = people.user("bench", cluster=cluster)
        time.sleep(5)  # Celery workers take a few seconds to import
        delays = []
        for _round in range(single):
            begun = time.time()
            number = put([sys.executable, "-S", "-c", PROGRAM])
            wait_for(lambda number=number: all_ended([number]), 60, f"job {number} did not end", 0.05)
            delays.append(float(printed(RunDir.of(number, 1).log)) - begun)
        before = orphans.used()
        begun = time.time()
        numbers = [put(["/bin/true"]) for _ in range(burst)]
        submitted = time.time()
        wait_for(lambda: all_ended(numbers), 300, "the burst did not end", 0.05)
        ended = time.time()
        time.sleep(1)  # the last supervisors write their records
        cost = {name: used - before[name] for name, used in orphans.used().items()}
    delays.sort()
    load = os.getloadavg()[0]
    print(f"spine on {os.cpu_count()} cores, sandbox tier {tickets.tier()[0]}, load of the machine {load:.1f}")
    p95 = delays[min(len(delays) - 1, int(0.95 * len(delays)))]
    print(f"  submit → user's process  p50 {statistics.median(delays):.3f} s  p95 {p95:.3f} s  ({single} jobs)")
    print("      reference: Slurm here 2.70 s default, 0.69 s tuned; wanted p95 ≤ 0.3")
    print(
        f"  short supervised jobs    {burst / (ended - begun):.1f}/s  ({burst} jobs, {submitted - begun:.1f} s to put)"
    )
    print("      reference: Slurm here 10.6/s default, 30.7/s tuned; wanted ≥ 20")
    print(f"  CPU per job of the burst {1000 * sum(cost.values()) / burst:.1f} ms, of it")
    for name, used in sorted(cost.items(), key=lambda item: -item[1]):
        print(f"      {name:<26} {1000 * used / burst:6.1f} ms")
    shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
