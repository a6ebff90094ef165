"""Three machines under random kills: processes, power, cables, database, broker. Then everything must come to rest.

Cables are put back before a machine would be given up: beyond that an old attempt and its successor do run at the
same time, unseen by each other, which the chapter `cable_out_too_long` looks at.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from pathlib import Path

from tests import nodes
from tests.chaos import acts, machines
from tests.running import wait_for

PROCESSES = {
    "agent": ("manage.py", "agent"),
    "cpu": ("celery", "cpu@"),
    "work": ("celery", "work@"),
    "supervisor": ("workers/supervisor/__main__.py",),
}
WEIGHTS = {
    "agent": 4, "cpu": 3, "work": 1, "supervisor": 4, "job": 4, "scheduler": 3, "web": 1, "broker": 2, "database": 2,
    "cable": 2, "power": 1,
}  # fmt: skip
CABLE_S = (2.0, 10.0)


def main(
    root: Path, *, kills: int | None, seed: int, keep: bool, only: tuple[str, ...] = (), true: bool = False
) -> int:
    """All chapters or those named, or with `kills` the storm; 0 when every rule held.

    Args:
        true: with the product's own times, and a line of 2 s there and back; nobody waits for a node to be lost then.
    """
    if why := nodes.why_not():
        print(f"skipped: {why}")
        return 0
    if true:
        nodes.TIMES.update(AIP_NODE_SUSPECT_S="15", AIP_NODE_UNREACHABLE_S="60", AIP_NODE_LOST_S="600")
        machines.LINE["delay_s"], machines.LINE["seconds"] = 1.0, 120.0
    if kills is None:
        for name, came, seconds in machines.tell(root / "cluster", only):
            print(f"| {name.replace('_', ' ')} | {came} | {seconds:.0f} s |")
        broken = False
    else:
        with nodes.cluster(root / "cluster") as cluster:
            acts.just_join(cluster)
            broken = not _storm(cluster, kills, seed)
    if not (broken or keep):
        shutil.rmtree(root, ignore_errors=True)
    return int(broken)


def _storm(cluster: nodes.Cluster, kills: int, seed: int) -> bool:
    from django.db.models import Sum

    from tests.chaos import feeder
    from tests.chaos.checker import check
    from workers.core.models import Allocation, Device
    from workers.execution.lost_attempts import MAX_LOSSES

    rng, record, killed = random.Random(seed), feeder.Record(), Counter[str]()
    owner, vc = feeder.owner_and_cluster()
    over = threading.Event()
    feeding = threading.Thread(target=feeder.feed, args=(random.Random(seed + 1), record, owner, vc, over, (0,)))
    feeding.start()
    begun = time.monotonic()
    try:
        while sum(killed.values()) < kills:
            time.sleep(rng.uniform(0.5, 2.5))
            what = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            if _strike(cluster, what, rng, record):
                killed[what] += 1
    finally:
        over.set()
        feeding.join()
    print(f"  struck {dict(killed)} in {time.monotonic() - begun:.0f} s", flush=True)
    last = time.monotonic()
    with contextlib.suppress(TimeoutError):
        wait_for(lambda: feeder.tried(feeder.all_ended, record), 90, "", 0.5)
    print(f"  all jobs ended {time.monotonic() - last:.1f} s after the last strike")
    with contextlib.suppress(TimeoutError):
        wait_for(lambda: not _programs(cluster), 30, "", 0.5)
    seen = {number: feeder.seen(number, record) for number in record.accepted}
    found = check(
        record.accepted,
        {number: job for number, job in seen.items() if job is not None},
        orphans={pid: f"job {job} attempt {attempt}" for pid, job, attempt in _programs(cluster)},
        leases=Allocation.objects.filter(released_at=None).count(),
        used_shares=Device.objects.aggregate(sum=Sum("used"))["sum"] or 0,
        max_losses=MAX_LOSSES,
    )
    attempts = sum(len(job.attempts) for job in seen.values() if job)
    lines = sum(attempt.log.count(b"\n") for job in seen.values() if job for attempt in job.attempts)
    print(f"  jobs {len(seen)}, attempts {attempts}, {lines} log lines compared")
    for rule in ("lost", "wrong", "twice", "lines", "silent", "orphans", "leases"):
        broken = found.broken.get(rule, [])
        print(f"  {rule:<8} {len(broken)}")
        for text in broken[:10]:
            print(f"           {text}")
    return not found.broken


def _strike(cluster: nodes.Cluster, what: str, rng: random.Random, record) -> bool:
    """Do one thing to the cluster; False where there is nothing to do it to."""
    from django.db import connection

    victim = cluster.machines[rng.choice(["node2", "node3"])]
    if what in PROCESSES:
        pids = victim.pids(*PROCESSES[what])
        return bool(pids) and _kill(rng.choice(pids))
    if what == "job":
        programs = _programs(cluster)
        if not programs:
            return False
        pid, job, attempt = rng.choice(programs)
        record.killed_programs.add((job, attempt))
        return _kill(pid)
    if what in ("scheduler", "web"):
        pids = (
            cluster.server.pids("manage.py", "scheduler")
            if what == "scheduler"
            else cluster.server.pids("aiplatform.cli.web")
        )
        return bool(pids) and _kill(rng.choice(pids))
    if what == "broker":
        cluster.server.signal(signal.SIGKILL, "valkey-server")
        cluster.start_broker()
    elif what == "database":
        cluster.database.kill()
        connection.close()  # ours was to the one that is dead
        cluster.database.start()
    elif what == "cable":
        victim.unplug()
        time.sleep(rng.uniform(*CABLE_S))  # pause: how long the cable is out
        victim.plug()
    else:
        acts.power_off_and_on(cluster, victim.name)
    return True


def _programs(cluster: nodes.Cluster) -> list[tuple[int, int, int]]:
    """User processes on all machines: (pid, job, attempt)."""
    found = []
    for machine in cluster.machines.values():
        for pid in machine.pids():
            with contextlib.suppress(OSError, KeyError, ValueError):
                lines = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
                told = dict(line.split("=", 1) for line in lines if "=" in line)
                if told["AIP_OUTPUT_DIR"].startswith(str(cluster.root)):
                    found.append((pid, int(told["AIP_JOB_ID"]), int(told["AIP_ATTEMPT"])))
    return found


def _kill(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False
