"""A chaos run among people: `up` with everything below it is killed and stopped at random while a crowd works with it.

The crowd (`tests/chaos/crowd/`) writes down what it asked for and what it was told. When the last process was killed
everything is left to come to rest, and what is there is compared with what the people, the viewers and the jobs saw.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests import running
from tests.chaos import afterwards, lodgings, recovery, witness
from tests.chaos.checker import Findings
from tests.chaos.crowd import ledger
from tests.chaos.recovery import Strike
from tests.chaos.upkeep import Found, Upkeep, processes
from workers.supervisor import records

SETTLE_S = 330.0
CALM_S = 40.0  # the crowd works and nothing is struck, for comparison
STOPPED = 0.25  # of all strikes; the others kill
STOPPED_S = (5.0, 20.0)
WEIGHTS = {
    "web": 6, "scheduler": 5, "agent": 6, "cpu": 5, "work": 2, "work child": 3, "forks": 4, "supervisor forks": 3,
    "broker": 4, "up": 1, "supervisor": 6, "job": 6, "sandbox": 4, "ports": 3, "ssh": 3, "exec server": 1,
}  # fmt: skip
WATCHERS = 8
SILENT_S = 15.0
FEW_KINDS = 3  # alive besides `up`: it is only just beginning, and killing it again and again would prove little
HOG = "while True: pass"


@dataclass(frozen=True)
class Asked:
    """What a run is to be."""

    kills: int
    seconds: float
    people: int
    viewers: int
    seed: int
    hog: int = 0
    dwellers: int = 2


@dataclass
class Report:
    """What a run did and found."""

    findings: Findings
    strikes: list[Strike]
    table: list[recovery.Row]
    counts: dict[str, Any] = field(default_factory=dict)
    course: list[dict[str, Any]] = field(default_factory=list)
    """What was done when, and how long what it was done to took to be healthy."""


def run(root: Path, asked: Asked) -> Report:
    """Prepare, let the crowd in, strike, wait for rest, judge."""
    rng, port = random.Random(asked.seed), running.free_port()
    os.environ["AIP_PORT"] = str(port)
    os.environ["AIP_PORTS_PORT"], os.environ["AIP_SSH_PORT"] = str(running.free_port()), str(running.free_port())
    upkeep = Upkeep(root, port)
    hogs: list[subprocess.Popen[bytes]] = []
    signs = recovery.Signs(root, upkeep.url)
    crowd = None
    try:
        upkeep.start()
        told = root / "crowd.json"
        told.write_text(json.dumps(_prepared(root, upkeep.url, asked)))
        with (root / "crowd.txt").open("wb") as out:
            crowd = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.crowd", str(told)], cwd=running.HERE, stdout=out, stderr=out
            )
        hogs = [subprocess.Popen([sys.executable, "-c", HOG]) for _core in range(asked.hog)]
        signs.start()
        running.wait_for(lambda: any(f["kind"] == "submitted" for f in ledger.read(root / "ledger.jsonl")), 60)
        calm = (time.time(), time.time() + CALM_S)
        time.sleep(CALM_S)  # pause: the crowd works undisturbed
        begun = time.monotonic()
        strikes = _strike_on(root, signs, asked, rng)
        struck_s = time.monotonic() - begun
        last = time.monotonic()
        crowd.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            crowd.wait(SETTLE_S)
        findings = Findings()
        counts = afterwards.judge(
            root,
            list(ledger.read(root / "ledger.jsonl")),
            _killed(strikes, "job", "sandbox", "exec server"),
            _killed(strikes, "supervisor"),
            _killed(strikes, "exec server"),
            findings,
        )
        counts |= {"struck_s": round(struck_s), "rested_s": round(time.monotonic() - last), "up_starts": upkeep.starts}
        table, course = _table(strikes, signs, calm, rng)
    finally:
        for process in [*hogs, *([crowd] if crowd else [])]:
            process.kill()
            process.wait()
        signs.stop()
        upkeep.stop()
    return Report(findings, strikes, table, counts, course)


def _prepared(root: Path, url: str, asked: Asked) -> dict[str, Any]:
    """Make people with data and code; every third has images to annotate."""
    from django.db import connection

    from accounts.access.permissions import SYSTEM_ADMIN
    from accounts.services import tokens
    from tests.factories import annotation
    from tests.factories import datasets as data
    from tests.factories import people as cast
    from training.programs import snapshots
    from workers.core.models import VirtualCluster

    cluster = VirtualCluster.objects.get(name="default")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(witness.__file__, "witness.py")
    people = []
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        file.write(packed.getvalue())
        file.flush()
        for number in range(asked.people):
            user = cast.user(f"person{number}", cluster=cluster)
            given: dict[str, Any] = {"name": user.username, "token": tokens.issue(user=user, name="chaos")[1]}
            given["version"] = data.version(data.dataset(user, f"cells{number}"), images=2).pk
            given["code"] = snapshots.from_archive(owner=user, archive=Path(file.name), name="witness").pk
            if number % 3 == 0:
                made = annotation.annotation_set(user, images=5, name=f"set{number}")
                given |= {"project": made.project_id, "set": made.pk, "label": made.labels.get(name="box").pk}
                given["tasks"] = list(made.tasks.values_list("pk", flat=True))
            people.append(given)
    watchers = [cast.user(f"watcher{n}", role=SYSTEM_ADMIN, cluster=cluster) for n in range(WATCHERS)]
    dwellers = lodgings.prepared(asked.dwellers, cluster)
    connection.close()
    return {
        "ports_url": f"http://127.0.0.1:{os.environ['AIP_PORTS_PORT']}", "ssh_port": int(os.environ["AIP_SSH_PORT"]),
        "dwellers": dwellers, "url": url, "ledger": str(root / "ledger.jsonl"), "seed": asked.seed, "people": people,
        "watchers": [tokens.issue(user=user, name="chaos")[1] for user in watchers], "viewers": asked.viewers,
        "think_s": 5.0, "in_flight": 14, "long_s": min(100.0, asked.seconds / 3),
    }  # fmt: skip


def _strike_on(root: Path, signs: recovery.Signs, asked: Asked, rng: random.Random) -> list[Strike]:
    """Strike at random moments until there were enough, or the time is over; who was stopped is let go on by then.

    Strikes overlap. Only where nothing came to life for a while they wait: on a busy machine a program is longer in
    beginning than these are apart, and a platform that never works could lose nothing.
    """
    strikes: list[Strike] = []
    asleep: list[threading.Thread] = []
    begun, gap_s = time.monotonic(), asked.seconds / max(asked.kills, 1)
    while len(strikes) + sum(thread.is_alive() for thread in asleep) < asked.kills:
        over = time.monotonic() - begun
        if over > asked.seconds * 1.3:
            break
        behind = over / gap_s - len(strikes)
        time.sleep(rng.uniform(0.1, 1.9) * gap_s * (0.5 if behind > 3 else 1))
        target = _chosen(root, rng) if signs.silence_s() < SILENT_S else None
        if target is None:
            continue
        if rng.random() < STOPPED:
            thread = threading.Thread(target=_stand_still, args=(target, rng.uniform(*STOPPED_S), strikes))
            thread.start()
            asleep.append(thread)
        else:
            at = time.time()
            if target.send(signal.SIGKILL):
                strikes.append(_strike(target, "killed", at))
    for thread in asleep:
        thread.join()
    return strikes


def _chosen(root: Path, rng: random.Random) -> Found | None:
    """A process of a kind that chance names again where there is none; None where nothing but `up` is there."""
    there: dict[str, list[Found]] = {}
    for one in processes(root):
        if not (one.run and (one.run / records.EXIT).exists()):
            there.setdefault(one.kind, []).append(one)
    if len(there.keys() & WEIGHTS.keys() - {"up"}) < FEW_KINDS:
        return None
    while True:
        kind = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if kind in there:
            return rng.choice(there[kind])


def _stand_still(target: Found, seconds: float, strikes: list[Strike]) -> None:
    if target.send(signal.SIGSTOP):
        begun = time.time()
        time.sleep(seconds)  # pause: how long it stands still
        at = time.time()
        if target.send(signal.SIGCONT):
            strikes.append(replace(_strike(target, "stopped", at), stopped_s=at - begun))


def _strike(target: Found, how: str, at: float) -> Strike:
    job, attempt = (int(target.run.parent.name), int(target.run.name)) if target.run else (0, 0)
    return Strike(target.kind, how, at, job, attempt)


def _killed(strikes: list[Strike], *kinds: str) -> dict[int, set[int]]:
    """Attempts of which a process of these kinds was killed, by job."""
    found: dict[int, set[int]] = {}
    for strike in strikes:
        if strike.how == "killed" and strike.kind in kinds:
            found.setdefault(strike.job, set()).add(strike.attempt)
    return found


def _table(
    strikes: list[Strike], signs: recovery.Signs, calm: tuple[float, float], rng: random.Random
) -> tuple[list[recovery.Row], list[dict[str, Any]]]:
    from workers.core.models import Attempt

    rows = Attempt.objects.values_list("job", "number", "started_at", "ended_at")
    ended = {(job, number): at.timestamp() for job, number, _started, at in rows if at}
    started = [at.timestamp() for _job, _number, at, _ended in rows if at]

    def healthy_after(strike: Strike) -> float | None:
        if strike.job:  # of a job and what is round it: until its end was written down
            at = ended.get((strike.job, strike.attempt))
            return None if at is None else max(0.0, at - strike.at)
        return signs.after(strike.kind, strike.at)

    own = [
        strike for strike in strikes if not (strike.job and (strike.how == "stopped" or strike.kind == "exec server"))
    ]  # it goes on, and ends any time
    course = [
        {"kind": one.kind, "how": one.how, "at_s": round(one.at - calm[1], 1), "stopped_s": round(one.stopped_s, 1)}
        | {"healthy_s": None if (seconds := healthy_after(one)) is None else round(seconds, 1)}
        for one in sorted(own, key=lambda strike: strike.at)
    ]
    return recovery.table(own, healthy_after, started, calm, rng), course


def counted(strikes: list[Strike]) -> dict[str, int]:
    return dict(sorted(Counter(f"{strike.kind} {strike.how}" for strike in strikes).items()))
