"""From submit to the user's process, and short jobs per second, beside Slurm: python -m tests.bench.spine [--slurm].

Real processes on this machine: broker, scheduler, agent, Celery workers, supervisors in the best sandbox tier. What
each of them computes per job of the burst is printed too: seconds of a clock depend on who else is on the machine.

`--slurm` runs the same jobs on a Slurm cluster of two nodes with as many slots (tests/bench/slurm.py), with its default
intervals and with the shortest ones, platform and clusters in turn; it prints medians of all rounds and their ratios.
Both take a burst one by one (`submission.submit`, `sbatch`) and as an array. Slurm runs jobs as root without a sandbox.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from aiplatform.lib import parenthood
from tests.bench import slurm
from tests.running import Platform, environment, platform, printed, wait_for
from workers.supervisor import processes

PROGRAM = "import time; print(repr(time.time()), flush=True)"
OVERCOMMIT, JOB_CPUS = 8, 0.5
PLATFORM, DEFAULT, TUNED = "platform", "Slurm default", "Slurm tuned"
_TICKS = os.sysconf("SC_CLK_TCK")


class Orphans:
    """Adopts the supervisors, which leave whoever started them, and adds up what they and their jobs computed."""

    def __init__(self, here: Platform) -> None:
        self.here, self.cpu_s = here, 0.0
        wait_for(lambda: all(part.pid for part in here.parts.values()), 60, "not every process has started")
        self.parts = set(processes.children(os.getpid()))  # what is a child later is a supervisor, if no part restarts

    def reap(self) -> None:
        for pid in set(processes.children(os.getpid())) - self.parts:
            with contextlib.suppress(ChildProcessError):
                reaped, _status, used = os.wait4(pid, os.WNOHANG)
                self.cpu_s += used.ru_utime + used.ru_stime if reaped else 0.0

    @contextlib.contextmanager
    def reaped(self) -> Iterator[None]:
        over = threading.Event()

        def again() -> None:
            while not over.wait(0.05):
                self.reap()

        parenthood.adopt_orphans(on=True)
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


@dataclass
class Round:
    """What one round of a system measured."""

    delays_s: list[float]  # from submit to the program
    rate: float  # jobs of a burst per second, submitted one by one
    array_rate: float  # the same, submitted as an array
    put_s: float  # to submit one of them
    cpu_ms: dict[str, float] = field(default_factory=dict)  # per job of that burst, by process


def on_platform(single: int, burst: int) -> Round:
    """Start a platform and measure it. Django is set up with its folder, once in a process."""
    from workers.core.models import Job, VirtualCluster
    from workers.core.runs import RunDir
    from workers.core.states import FINAL
    from workers.jobs import arrays, submission

    root = Path(os.environ["AIP_DATA_ROOT"])
    asked = {"kind": "command", "name": "bench", "cpus": JOB_CPUS}

    def put(argv: list[str]) -> int:
        return submission.submit(owner=owner, cluster=cluster, spec={"argv": argv}, **asked).pk

    def put_array() -> list[int]:
        indices = arrays.parse(f"1-{burst}")
        jobs = submission.submit_array(
            owner=owner, cluster=cluster, spec={"argv": ["/bin/true"]}, indices=indices, **asked
        )
        return [job.pk for job in jobs]

    def wait_until_ended(numbers: list[int]) -> None:
        jobs = Job.objects.filter(pk__in=numbers, state__in=FINAL)
        wait_for(lambda: jobs.count() == len(numbers), 300, "the jobs did not end", 0.05)

    with platform(root) as here, (orphans := Orphans(here)).reaped():
        cluster = VirtualCluster.objects.get_or_create(name="default")[0]
        owner = _owner(cluster)
        wait_until_ended([put(["/bin/true"])])  # Celery workers take a few seconds to begin
        delays = []
        for _job in range(single):
            begun = time.time()
            number = put([sys.executable, "-S", "-c", PROGRAM])
            wait_until_ended([number])
            delays.append(float(printed(RunDir.for_attempt(number, 1).log)) - begun)
        before, begun = orphans.used(), time.time()
        numbers = [put(["/bin/true"]) for _job in range(burst)]
        put_s = (time.time() - begun) / burst
        wait_until_ended(numbers)
        rate = burst / (time.time() - begun)
        time.sleep(1)  # the last supervisors write their records
        cost = {name: 1000 * (used - before[name]) / burst for name, used in orphans.used().items()}
        begun = time.time()
        wait_until_ended(put_array())
        return Round(delays, rate, burst / (time.time() - begun), put_s, cost)


def _owner(cluster):
    from accounts.models import User
    from tests.factories import people

    return User.objects.filter(username="bench").first() or people.user("bench", cluster=cluster)


def on_slurm(single: int, burst: int, *, tuned: bool) -> Round:
    """Start a Slurm cluster and measure it."""
    slots = int((os.cpu_count() or 1) * OVERCOMMIT / JOB_CPUS)
    root = Path(tempfile.mkdtemp(prefix="aip-slurm-"))

    def wait_until_ended(since: float) -> float:
        wait_for(cluster.is_empty, 300, "the jobs of Slurm did not end", 0.05)
        return burst / (time.time() - since)

    try:
        with slurm.cluster(root, slots=slots, tuned=tuned) as cluster:
            delays = []
            for number in range(single):
                output, begun = root / f"{number}.txt", time.time()
                cluster.submit(f"{sys.executable} -S -c '{PROGRAM}'", str(output))
                wait_for(lambda output=output: output.exists() and output.read_text().endswith("\n"), 60)
                delays.append(float(output.read_text()) - begun)
                wait_for(cluster.is_empty, 60)
            begun = time.time()
            for _job in range(burst):
                cluster.submit("/bin/true")
            put_s = (time.time() - begun) / burst
            rate = wait_until_ended(begun)
            begun = time.time()
            cluster.submit("/bin/true", jobs=burst)
            return Round(delays, rate, wait_until_ended(begun), put_s)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def main(argv: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spine", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--single", type=int, default=20, help="jobs that are submitted one after another's end")
    parser.add_argument("--burst", type=int, default=120, help="jobs that are submitted together")
    parser.add_argument("--rounds", type=int, default=1, help="of each system")
    parser.add_argument("--slurm", action="store_true", help="compare with Slurm")
    chosen = parser.parse_args(argv)
    if chosen.slurm and (missing := slurm.missing()):
        print(missing, file=sys.stderr)
        return 2
    root = Path(tempfile.mkdtemp(prefix="aip-bench-"))
    os.environ.update(environment(root))
    os.environ["AIP_CPU_OVERCOMMIT"] = str(OVERCOMMIT)

    import django

    django.setup()
    systems: dict[str, Callable[[], Round]] = {PLATFORM: lambda: on_platform(chosen.single, chosen.burst)}
    if chosen.slurm:
        systems[DEFAULT] = lambda: on_slurm(chosen.single, chosen.burst, tuned=False)
        systems[TUNED] = lambda: on_slurm(chosen.single, chosen.burst, tuned=True)
    rounds: dict[str, list[Round]] = defaultdict(list)
    try:
        for _round in range(chosen.rounds):
            for name, run in systems.items():
                rounds[name].append(run())
    finally:
        shutil.rmtree(root, ignore_errors=True)
    _show(rounds, chosen)
    return 0


def _show(rounds: dict[str, list[Round]], chosen: argparse.Namespace) -> None:
    from workers.execution import tickets

    load = os.getloadavg()[0]
    print(f"spine on {os.cpu_count()} cores, sandbox tier {tickets.tier()[0]}, load of the machine {load:.1f}")
    print(
        f"  {chosen.rounds} rounds of {chosen.single} single jobs and bursts of {chosen.burst}; medians of the rounds"
    )
    found = {name: _figures(several) for name, several in rounds.items()}
    for name, figures in found.items():
        print(
            f"  {name:<14} submit → program  p50 {figures['p50']:.3f} s  p95 {figures['p95']:.3f} s; short jobs "
            f"{figures['rate']:.1f}/s, as an array {figures['array']:.1f}/s; {figures['put_ms']:.1f} ms to submit one"
        )
    for name in (DEFAULT, TUNED):
        if name in found:
            ours, theirs = found[PLATFORM], found[name]
            print(
                f"  platform / {name}: jobs/s {ours['rate'] / theirs['rate']:.2f}, as an array "
                f"{ours['array'] / theirs['array']:.2f}; latency p50 {ours['p50'] / theirs['p50']:.2f}, "
                f"p95 {ours['p95'] / theirs['p95']:.2f}"
            )
    if TUNED in found:
        print(f"      {TUNED} (Slurm {slurm.version()}): {slurm.TUNED}")
    cost = rounds[PLATFORM][-1].cpu_ms
    print(f"  CPU per job of the burst {sum(cost.values()):.1f} ms, of it")
    for name, used in sorted(cost.items(), key=lambda item: -item[1]):
        print(f"      {name:<26} {used:6.1f} ms")


def _figures(rounds: list[Round]) -> dict[str, float]:
    def p95(delays: list[float]) -> float:
        return sorted(delays)[min(len(delays) - 1, int(0.95 * len(delays)))]

    middle = statistics.median
    return {
        "p50": middle(middle(one.delays_s) for one in rounds),
        "p95": middle(p95(one.delays_s) for one in rounds),
        "rate": middle(one.rate for one in rounds),
        "array": middle(one.array_rate for one in rounds),
        "put_ms": middle(1000 * one.put_s for one in rounds),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
