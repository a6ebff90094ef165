"""From the kill of a process to health, and to the next job running: python -m tests.bench.recover [--rounds 5].

A running `up` loses one process at a time by SIGKILL, each kind so many times, on a free machine and beside two loops
that want both cores. A job is submitted at once after each kill. `platform` is everything at once, `up` started again.
Processor time is what the new process used until it was healthy, its children's included.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.journeys.up import Up
from tests.running import environment, wait_for

KINDS = {
    "web": ("aiplatform.cli.web",),
    "scheduler": ("manage.py", "scheduler"),
    "agent": ("manage.py", "agent"),
    "cpu": ("cpu@",),
    "work": ("work@",),
    "broker": ("valkey-server",),
}
PLATFORM = "platform"
LOOK_S, GIVE_UP_S = 0.02, 180.0
REST_S = (1.0, 3.0)
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Seen:
    """Seconds from each kill of one kind, and processor seconds of each new process."""

    healthy: list[float] = field(default_factory=list)
    running: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def main(argv: list[str]) -> int:
    """Print one table free and one loaded."""
    parser = argparse.ArgumentParser(prog="tests.bench.recover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="kills of each kind")
    parser.add_argument("--only", nargs="*", choices=[*KINDS, PLATFORM], help="kinds to kill")
    parser.add_argument("--hogs", type=int, default=2, help="busy loops beside the loaded half; 0 leaves it out")
    options = parser.parse_args(argv)
    root = Path(tempfile.mkdtemp(prefix="aip-bench-"))
    up = Up(root)
    try:
        up.wait(r"ready in \d+ s")
        os.environ.update(environment(root))
        import django

        django.setup()
        bench = _Bench(root, up)
        kinds = options.only or [*KINDS, PLATFORM]
        _show("free", bench.measure(kinds, options.rounds))
        if options.hogs:
            with _hogs(options.hogs):
                _show("loaded", bench.measure(kinds, options.rounds))
        up = bench.up
    finally:
        up.stop()
        shutil.rmtree(root, ignore_errors=True)
    return 0


class _Bench:
    """A platform, and the person whose jobs are started on it."""

    def __init__(self, root: Path, up: Up) -> None:
        from tests.factories import people
        from workers.core.models import VirtualCluster

        self.root, self.up = root, up
        self.cluster = VirtualCluster.objects.get_or_create(name="default")[0]
        self.owner = people.user("bench", cluster=self.cluster)
        self._until_running(self._submit(), time.monotonic())

    def measure(self, kinds: list[str], rounds: int) -> dict[str, Seen]:
        """Kill each kind `rounds` times, in a mixed order that is the same each time."""
        order = kinds * rounds
        random.Random(1).shuffle(order)
        seen: dict[str, Seen] = defaultdict(Seen)
        for kind in order:
            time.sleep(random.Random(len(seen)).uniform(*REST_S))
            if kind == PLATFORM:
                self._restart(seen[kind])
            else:
                self._kill(kind, seen[kind])
        return seen

    def _kill(self, kind: str, seen: Seen) -> None:
        old = {pid for pid in self.up.children() if _is(pid, kind)}
        begun = time.monotonic()
        for pid in old:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        job = self._submit()
        healthy = running = None
        while healthy is None or running is None:
            if healthy is None and (new := self._healthy(kind, old)):
                healthy = time.monotonic() - begun
                seen.cpu.append(_cpu_s(new))
            if running is None and self._runs(job):
                running = time.monotonic() - begun
            if time.monotonic() - begun > GIVE_UP_S:
                raise TimeoutError(f"{kind} did not come back:\n{self.up.said()[-4000:]}")
            time.sleep(LOOK_S)
        seen.healthy.append(healthy)
        seen.running.append(running)

    def _restart(self, seen: Seen) -> None:
        """Everything dies at once, as when the power fails; then `up` is started again."""
        from django.db import connection

        begun = time.monotonic()
        for pid in [self.up.process.pid, *_below(self.up.process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.up.process.wait()
        connection.close()
        job = self._submit()
        self.up = Up(self.root)
        self.up.wait(r"ready in \d+ s")
        seen.healthy.append(time.monotonic() - begun)
        seen.cpu.append(_cpu_s(self.up.process.pid))
        seen.running.append(self._until_running(job, begun))

    def _until_running(self, job: int, begun: float) -> float:
        wait_for(lambda: self._runs(job), GIVE_UP_S, f"job {job} did not begin", LOOK_S)
        return time.monotonic() - begun

    def _submit(self) -> int:
        from workers.jobs import submission

        spec = {"argv": ["/bin/sleep", "0.2"]}
        job = submission.submit(owner=self.owner, cluster=self.cluster, kind="command", name="b", spec=spec, cpus=0.5)
        return job.pk

    def _runs(self, number: int) -> bool:
        from workers.core.models import Attempt

        return Attempt.objects.filter(job=number, started_at__isnull=False).exists()

    def _healthy(self, kind: str, old: set[int]) -> int:
        """The pid of the new process once it does its work; 0 before."""
        new = [pid for pid in self.up.children() if pid not in old and _is(pid, kind)]
        return new[0] if new and HEALTH[kind](self, new[0]) else 0

    def web_answers(self, _pid: int) -> bool:
        with contextlib.suppress(OSError):
            return bool(urllib.request.urlopen(f"{self.up.url}/healthz", timeout=2).read())
        return False

    def scheduler_leads(self, pid: int) -> bool:
        from workers.core.models import Lease

        holder = Lease.objects.filter(name="scheduler").values_list("holder", flat=True).first() or ""
        return str(pid) in holder.split(":")

    def agent_beats(self, pid: int) -> bool:
        from workers.core.models import Node

        started = time.time() - _age_s(pid)
        return Node.objects.filter(name="node1", facts__at__isnull=False, heartbeat_at__gt=_moment(started)).exists()

    def worker_listens(self, pid: int) -> bool:
        """Whether it stands in the broker's list of clients with a blocking read."""
        queue = "node1.cpu" if _is(pid, "cpu") else "node1.work"
        from aiplatform.celery import app

        with contextlib.suppress(Exception), app.connection_for_read() as line:
            line.ensure_connection(max_retries=1)
            found = app.control.inspect(timeout=0.3, connection=line).ping() or {}
            return any(name.startswith(f"{queue.rpartition('.')[2]}@") for name in found)
        return False

    def broker_answers(self, _pid: int) -> bool:
        from workers.resources.monitoring.snapshot_reader import broker_round_trip

        return broker_round_trip() is not None


HEALTH = {
    "web": _Bench.web_answers,
    "scheduler": _Bench.scheduler_leads,
    "agent": _Bench.agent_beats,
    "cpu": _Bench.worker_listens,
    "work": _Bench.worker_listens,
    "broker": _Bench.broker_answers,
}


def _moment(seconds: float) -> object:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC)


def _is(pid: int, kind: str) -> bool:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        return all(word in words for word in KINDS[kind])
    return False


def _below(pid: int) -> list[int]:
    """Return the pids of all that a process has started, and they in turn."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_below(child)]
    return found


def _age_s(pid: int) -> float:
    begun = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]) / _TICKS
    return float(Path("/proc/uptime").read_text().split()[0]) - begun


def _cpu_s(pid: int) -> float:
    """Processor seconds of a process and of all below it, dead ones included that were waited for."""
    total = 0.0
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total = sum(map(int, fields[11:15])) / _TICKS
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            total += _cpu_s(int(child))
    return total


@contextlib.contextmanager
def _hogs(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _show(how: str, seen: dict[str, Seen]) -> None:
    print(f"{how}: load of the machine {os.getloadavg()[0]:.1f}")
    print("  killed       times   healthy p50 / p95 [s]   next job runs p50 / p95 [s]   CPU until healthy [s]")
    for kind, about in sorted(seen.items()):
        print(
            f"  {kind:<12} {len(about.running):>5}   {_pair(about.healthy):>21}   {_pair(about.running):>27}"
            f"   {statistics.median(about.cpu):>21.1f}"
        )
    everything = [seconds for kind, about in seen.items() if kind != PLATFORM for seconds in about.running]
    if everything:
        print(f"  {how}, any process killed: next job runs p50 / p95  {_pair(everything)} s", flush=True)


def _pair(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return f"{statistics.median(ordered):.1f} / {p95:.1f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
