"""Recovery times: signs of life, looked for all the time, and compared with the strikes afterwards."""

from __future__ import annotations

import bisect
import contextlib
import os
import random
import socket
import sqlite3
import statistics
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LOOK_S = 0.2
PING_S = 0.7
LAST_ANSWERS_S = 1.5
PARTS = ("web", "scheduler", "agent", "broker", "cpu", "work", "ports", "ssh")
NOTHING, CALM_MOMENTS = "nothing", 200
ANY_PART = "any part killed"
UNHINDERED = "the same, while the rest worked"  # a broker that stands still answers nobody
NEEDED = ("broker", "forks", "up")  # by every part that starts
WITHOUT_SIGN = ("forks", "supervisor forks")  # start other processes, whose signs are seen


@dataclass(frozen=True)
class Strike:
    """Something that was done to a process.

    Args:
        at: when it was killed, or when it was let go on after it was stopped.
        stopped_s: for how long it stood still before that.
    """

    kind: str
    how: str
    at: float
    job: int = 0
    attempt: int = 0
    stopped_s: float = 0.0

    @property
    def is_of_a_part(self) -> bool:
        """Whether it was done to a process of the platform; all others belong to a job and end with it."""
        return self.kind.removesuffix(" child") in (*PARTS, *WITHOUT_SIGN, "up")


class Signs:
    """Signs of life of each part: (of when it is, when it was seen), in the order they were seen."""

    def __init__(self, root: Path, url: str) -> None:
        self.database, self.url = root / "aiplatform.sqlite3", url
        self.seen: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self.missed: list[float] = []  # when the web did not answer
        self._over = threading.Event()
        looks = (
            (self._web, LOOK_S),
            (self._rows, LOOK_S),
            (self._broker, LOOK_S),
            (self._workers, PING_S),
            *(
                (lambda name=name, port=port: self._listens(name, port), LOOK_S)
                for name, port in (("ports", "AIP_PORTS_PORT"), ("ssh", "AIP_SSH_PORT"))
            ),
        )
        self._threads = [threading.Thread(target=self._repeat, args=look, daemon=True) for look in looks]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(10)

    def after(self, kind: str, moment: float) -> float | None:
        """Seconds from `moment` until the first sign of life that is newer; None where none came."""
        if kind == "up":
            each = [self.after(part, moment) for part in PARTS]
            return None if None in each else max(value for value in each if value is not None)
        part, since = kind.removesuffix(" child"), moment
        if part == "web":  # the children of a killed server answer for a moment longer
            since = next((missed for missed in self.missed if moment < missed < moment + LAST_ANSWERS_S), moment)
        found = (seen for of, seen in self.seen[part] if of > since)
        return next((seen - moment for seen in found), None)

    def silence_s(self) -> float:
        """For how long that one of web, scheduler and agent is silent which is silent the longest."""
        return max(time.time() - max((seen for _of, seen in self.seen[part]), default=0) for part in PARTS[:3])

    def _repeat(self, look: Callable[[], None], pause_s: float) -> None:
        while not self._over.wait(pause_s):
            with contextlib.suppress(Exception):  # what is away gives no sign
                look()

    def _web(self) -> None:
        asked = time.time()
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5):
                self.seen["web"].append((asked, time.time()))
        except OSError:
            self.missed.append(asked)

    def _listens(self, name: str, variable: str) -> None:
        """Whether it answers to whoever connects: the gateway greets, the origin refuses what leads nowhere."""
        asked = time.time()
        with socket.create_connection(("127.0.0.1", int(os.environ[variable])), timeout=5) as link:
            if name == "ports":
                link.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            if link.recv(4):
                self.seen[name].append((asked, time.time()))

    def _broker(self) -> None:
        from workers.core import scheduler_wakeup

        asked, client = time.time(), scheduler_wakeup._client(1.0)
        if client is not None and client.ping():
            self.seen["broker"].append((asked, time.time()))

    def _rows(self) -> None:
        link = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=1)
        with contextlib.closing(link):
            lease = link.execute("SELECT renewed_at FROM workers_lease WHERE name = 'scheduler'").fetchone()
            beat = link.execute("SELECT heartbeat_at FROM workers_node").fetchone()
        for part, row in (("scheduler", lease), ("agent", beat)):
            of = datetime.fromisoformat(row[0]).replace(tzinfo=UTC).timestamp()
            if not self.seen[part] or self.seen[part][-1][0] < of:
                self.seen[part].append((of, time.time()))

    def _workers(self) -> None:
        from celery import current_app

        asked = time.time()
        for answer in current_app.control.ping(timeout=PING_S) or ():
            for name in answer:
                self.seen[name.partition("@")[0]].append((asked, time.time()))


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds until what was struck was healthy, and until the next job ran."""

    name: str
    strikes: int
    healthy: Mapping[str, float]
    next_job: Mapping[str, float]
    never: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "strikes": self.strikes,
            "healthy_s": dict(self.healthy),
            "next_job_s": dict(self.next_job),
            "never": self.never,
        }


def table(
    strikes: Sequence[Strike],
    healthy_after: Callable[[Strike], float | None],
    started: Iterable[float],
    calm: tuple[float, float],
    rng: random.Random,
) -> list[Row]:
    """A line for each kind of process and thing done to it, and one of moments at which nothing was done.

    Args:
        started: when each attempt began to run, on the clock of `Strike.at`.
        calm: from when to when the same users worked and nothing was struck.
    """
    starts = sorted(started)
    groups: dict[str, list[Strike]] = defaultdict(list)
    for strike in strikes:
        groups[f"{strike.kind} {strike.how}"].append(strike)
        if strike.how == "killed" and strike.kind.removesuffix(" child") in PARTS:
            groups[ANY_PART].append(strike)
            if not _meets_a_stop(strike, healthy_after(strike), strikes):
                groups[UNHINDERED].append(strike)
    groups[NOTHING] = [Strike(NOTHING, "", rng.uniform(*calm)) for _moment in range(CALM_MOMENTS)]
    rows = []
    for name, group in sorted(groups.items()):
        healthy = [healthy_after(strike) for strike in group if strike.kind not in (NOTHING, *WITHOUT_SIGN)]
        until = [starts[place] - s.at for s in group if (place := bisect.bisect(starts, s.at)) < len(starts)]
        known = [seconds for seconds in healthy if seconds is not None]
        rows.append(Row(name, len(group), figures(known), figures(until), len(healthy) - len(known)))
    return rows


def _meets_a_stop(killed: Strike, healthy_s: float | None, strikes: Iterable[Strike]) -> bool:
    """Whether something that it needs stood still while a process that was killed recovered."""
    needed = (*NEEDED, killed.kind.removesuffix(" child"))
    until = float("inf") if healthy_s is None else killed.at + healthy_s
    return any(
        one.how == "stopped"
        and one.kind.removesuffix(" child") in needed
        and one.at - one.stopped_s < until
        and killed.at < one.at
        for one in strikes
    )


def is_of_a_part(row: Row) -> bool:
    """Whether a row is about processes of the platform, which are started again; the others end with their job."""
    return row.name in (ANY_PART, UNHINDERED) or Strike(row.name.rpartition(" ")[0], "", 0.0).is_of_a_part


def added_delay(rows: Iterable[Row]) -> dict[str, float]:
    """How much later the next job runs after a kill of a part than without one, by median, p95 and maximum."""
    by_name = {row.name: row.next_job for row in rows}
    struck, calm = by_name.get(ANY_PART, {}), by_name.get(NOTHING, {})
    return {key: round(struck[key] - calm[key], 1) for key in struck if key in calm}


def figures(values: Sequence[float]) -> dict[str, float]:
    """Median, 95th percentile and maximum, rounded to a tenth; empty where there is nothing."""
    if not values:
        return {}
    ordered = sorted(values)
    high = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
    return {"median": round(statistics.median(ordered), 1), "p95": round(high, 1), "max": round(ordered[-1], 1)}


def as_text(rows: Sequence[Row]) -> str:
    """The tables as people read them: recovery of parts, ends of jobs that were struck, delay of jobs."""
    by_name = {row.name: row for row in rows}
    parts = [row for row in rows if is_of_a_part(row)]
    jobs = [row for row in rows if not is_of_a_part(row) and row.name != NOTHING]
    lines = _lines(
        "recovery of parts: healthy after, s", [(row.name, row.strikes, row.healthy, row.never) for row in parts]
    )
    lines += _lines(
        "jobs that were struck: end known after, s", [(r.name, r.strikes, r.healthy, r.never) for r in jobs]
    )
    compared = [(name, by_name[name]) for name in (NOTHING, ANY_PART, UNHINDERED) if name in by_name]
    delays = [(name, row.strikes, row.next_job, 0) for name, row in compared]
    delays.append(("difference", 0, added_delay(rows), 0))
    return "\n".join(lines + _lines("delay of jobs: the next one runs after, s", delays))


def _lines(title: str, rows: Iterable[tuple[str, int, Mapping[str, float], int]]) -> list[str]:
    lines = [f"  {title:<44}{'times':>6}   {'median':>6} {'p95':>6} {'max':>6}"]
    for name, times, of, never in rows:
        cells = " ".join(f"{of.get(key, '-'):>6}" for key in ("median", "p95", "max"))
        lines.append(f"    {name:<42}{times or '':>6}   {cells}" + (f"   {never} never" if never else ""))
    return lines
