"""One chaos run: jobs come in, processes are killed, wishes are made; then everything must come to rest."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from django.db import InterfaceError, OperationalError, connection
from django.db.models import Sum

from aiplatform.lib.errors import DomainError
from tests import running
from tests.chaos import witness
from tests.chaos.checker import AttemptSeen, Findings, JobSeen, check
from tests.factories import people
from tests.running import free_port
from workers.jobs import actions, submission
from workers.models import Allocation, Device, Job, VirtualCluster
from workers.runs import RunDir
from workers.states import FINAL
from workers.supervisor import records

log = logging.getLogger(__name__)

IN_FLIGHT = 8
SETTLE_S = 60.0
ORPHANS_S = 60.0
PARTS = {
    "scheduler": 2,
    "agent": 3,
    "cpu": 2,
    "work": 1,
    "gpu0": 1,
    "gpu1": 1,
    "valkey": 2,
    "supervisor": 3,
    "job": 3,
    "web": 1,
}


@dataclass
class Report:
    """What a run did and found."""

    findings: Findings
    jobs: int = 0
    attempts: int = 0
    log_lines: int = 0
    killing_s: float = 0.0
    settling_s: float = 0.0
    states: dict[str, int] = field(default_factory=dict)
    killed: dict[str, int] = field(default_factory=dict)


@dataclass
class Record:
    """What the run itself did to jobs, to be compared with what became of them."""

    accepted: dict[int, tuple[int, int]] = field(default_factory=dict)  # job → (lines, exit code)
    killed_programs: set[tuple[int, int]] = field(default_factory=set)  # (job, attempt)
    stopped: set[int] = field(default_factory=set)
    paused: set[int] = field(default_factory=set)


def run(root: Path, *, kills: int, seed: int, pause_s: float) -> Report:
    """Run the platform in `root`, kill `kills` processes, wait for rest, judge."""
    rng = random.Random(seed)
    record = Record()
    killed: Counter[str] = Counter()
    with running.platform(root, gpus=2, web_port=free_port()) as here:
        owner, cluster = _people()
        over = threading.Event()
        feeder = threading.Thread(target=_feed, args=(random.Random(seed + 1), record, owner, cluster, over))
        feeder.start()
        begun = time.monotonic()
        while sum(killed.values()) < kills:
            time.sleep(rng.uniform(0.2, 2 * pause_s - 0.2))
            target = rng.choices(list(PARTS), list(PARTS.values()))[0]
            if _kill(target, rng, here, record):
                killed[target] += 1
        report = Report(Findings(), killing_s=time.monotonic() - begun, killed=dict(killed))
        over.set()
        feeder.join()
        last = time.monotonic()
        with contextlib.suppress(TimeoutError):
            running.wait_for(lambda: _tried(_all_ended, record), SETTLE_S, "", 0.2)
        report.settling_s = time.monotonic() - last
        orphans = running.processes_of(root)
        deadline = time.monotonic() + ORPHANS_S
        while orphans and time.monotonic() < deadline:
            time.sleep(0.2)
            orphans = running.processes_of(root)
        seen = {number: _seen(number, record) for number in record.accepted}
        leases = Allocation.objects.filter(released_at=None).count()
        used = Device.objects.aggregate(sum=Sum("used"))["sum"] or 0
    known = {number: job for number, job in seen.items() if job is not None}
    report.findings = check(record.accepted, known, orphans=orphans, leases=leases, used_shares=used)
    report.jobs = len(known)
    report.attempts = sum(len(job.attempts) for job in known.values())
    report.log_lines = sum(attempt.log.count(b"\n") for job in known.values() for attempt in job.attempts)
    report.states = dict(Counter(job.state for job in known.values()))
    connection.close()
    return report


def _people():
    cluster = VirtualCluster.objects.get_or_create(name="default")[0]
    return people.user("chaos", cluster=cluster), cluster


@contextlib.contextmanager
def _tolerant():
    """A database that is away, or a refusal, is part of the run: the next try comes on a new connection."""
    try:
        yield
    except DomainError:
        pass
    except (OperationalError, InterfaceError):
        connection.close()


def _feed(rng: random.Random, record: Record, owner, cluster, over: threading.Event, cards=(0, 0, 1)) -> None:
    """Keep some jobs in flight, and press buttons of some of them."""
    code = Path(witness.__file__).read_text()
    while not over.is_set():
        with _tolerant():
            if Job.objects.exclude(state__in=FINAL).count() < IN_FLIGHT:
                lines, exit_code = rng.randint(5, 60), rng.choice([0, 0, 0, 0, 3])
                argv = [sys.executable, "-c", code, str(lines), "0.05", str(exit_code)]
                job = submission.submit(
                    owner=owner, cluster=cluster, kind="command", name="witness", spec={"argv": argv},
                    gpus_per_node=rng.choice(cards), cpus=0.5,
                )  # fmt: skip
                record.accepted[job.pk] = (lines, exit_code)
            _press(rng, record)
        over.wait(rng.uniform(0.05, 0.3))
    for number in record.paused:
        for _try in range(50):
            with _tolerant():
                actions.resume(Job.objects.get(pk=number))
                break
            with _tolerant():
                if Job.objects.get(pk=number).state in FINAL:
                    break
            time.sleep(0.2)
    connection.close()


def _press(rng: random.Random, record: Record) -> None:
    number = rng.choice(list(record.accepted)) if record.accepted and rng.random() < 0.2 else None
    if number is None:
        return
    job = Job.objects.get(pk=number)
    if job.state in FINAL:
        return
    if number in record.paused:
        actions.resume(job)
        record.paused.discard(number)
    elif rng.random() < 0.3:
        record.stopped.add(number)
        actions.stop(job)
    else:
        actions.pause(job)
        record.paused.add(number)


def _kill(target: str, rng: random.Random, here: running.Platform, record: Record) -> bool:
    """SIGKILL one process of a kind; False where none lives just now."""
    if target in here.parts:
        return here.parts[target].send(signal.SIGKILL)
    live = [run for run in _live_runs(here.root) if not (run / records.EXIT).exists()]
    if not live:
        return False
    run = rng.choice(live)
    kept = records.read(run / records.SUPERVISOR) or {}
    if target == "supervisor":
        return records.is_alive(kept) and _signal(int(kept["pid"]))
    job, attempt = int(run.parent.name), int(run.name)
    mark = f"AIP_OUTPUT_DIR={run}/".encode()
    for pid in running.processes_of(here.root):
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{pid}/environ").read_bytes():
                record.killed_programs.add((job, attempt))
                return _signal(pid)
    return False


def _signal(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _live_runs(root: Path) -> list[Path]:
    return [path.parent for path in (root / "jobs").glob("*/*/supervisor.json")]


def _all_ended(record: Record) -> bool:
    return not Job.objects.filter(pk__in=record.accepted).exclude(state__in=FINAL).exists()


def _tried(what, *given) -> bool:
    try:
        return what(*given)
    except (OperationalError, InterfaceError):
        connection.close()
        return False


def _seen(number: int, record: Record) -> JobSeen | None:
    job = Job.objects.filter(pk=number).first()
    if job is None:
        return None
    lines, exit_code = record.accepted[number]
    killed = frozenset(attempt for job_id, attempt in record.killed_programs if job_id == number)
    return JobSeen(number, job.state, lines, exit_code, attempts_of(job), killed, number in record.stopped)


def attempts_of(job: Job) -> list[AttemptSeen]:
    """A job's attempts with their logs, and what the processes that ran for them saw."""
    attempts = []
    for row in sorted(job.attempts.all(), key=lambda attempt: attempt.number):
        run = RunDir.of(job.pk, row.number)
        witnesses = [
            [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
            for path in sorted(run.outputs.glob("witness-*.jsonl"))
        ]
        text = run.log.read_bytes() if run.log.exists() else b""
        attempts.append(
            AttemptSeen(row.number, row.state, row.reason, str(row.message), row.ended_at is not None, text, witnesses)
        )
    return attempts
