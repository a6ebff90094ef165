"""Judging a chaos run afterwards: witness files, database rows and logs must tell one story. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LINE = re.compile(rb"^line (\d{6}) of job (\d+) attempt (\d+)$", re.MULTILINE)
GOOD = frozenset({"succeeded", "finished_early"})
FINAL = frozenset({"succeeded", "finished_early", "failed", "stopped", "lost"})


@dataclass(frozen=True)
class AttemptSeen:
    """One attempt as the database knows it, its log, and one list of rows per process that ran for it."""

    number: int
    state: str
    reason: str
    sentence: str
    ended: bool
    log: bytes = b""
    witnesses: Sequence[Sequence[Mapping[str, Any]]] = ()


@dataclass(frozen=True)
class JobSeen:
    """One accepted job.

    Attributes:
        killed: attempts whose program the run killed; `orphaned`: whose supervisor.
        stopped: a stop was asked; `finished`: an early end.
    """

    job: int
    state: str
    lines: int
    exit_code: int
    attempts: Sequence[AttemptSeen]
    killed: frozenset[int] = frozenset()
    stopped: bool = False
    finished: bool = False
    orphaned: frozenset[int] = frozenset()


@dataclass
class Findings:
    """Everything that must be empty, by rule."""

    broken: dict[str, list[str]] = field(default_factory=dict)

    def add(self, rule: str, text: str) -> None:
        self.broken.setdefault(rule, []).append(text)


def check(
    accepted: Iterable[int],
    jobs: Mapping[int, JobSeen],
    *,
    orphans: Mapping[int, str],
    leases: int,
    used_shares: int,
    max_losses: int,
) -> Findings:
    """Compare what was accepted with what is known and what the jobs themselves saw.

    Args:
        accepted: numbers of all jobs whose submission was answered.
        orphans: user processes that live 10 s after the end.
        leases: allocations not given back; `used_shares` the sum the devices say.
        max_losses: lost attempts after which a job is queued again; with one more it stays lost.
    """
    found = Findings()
    for number in accepted:
        job = jobs.get(number)
        if job is None:
            found.add("lost", f"job {number} is not in the database")
            continue
        _ended_rightly(job, max_losses, found)
        _never_twice(job, found)
        for attempt in job.attempts:
            _log_is_whole(job, attempt, found)
            if attempt.state not in GOOD and attempt.ended and not (attempt.reason and attempt.sentence):
                found.add("silent", f"job {number} attempt {attempt.number} ended {attempt.state} without a reason")
    for pid, command in orphans.items():
        found.add("orphans", f"process {pid} lives on: {command}")
    if leases or used_shares:
        found.add("leases", f"{leases} allocations and {used_shares} shares were not given back")
    return found


def _ended_rightly(job: JobSeen, max_losses: int, found: Findings) -> None:
    if job.state not in FINAL:
        found.add("lost", f"job {job.job} never ended, it is {job.state}")
        return
    live = [attempt.number for attempt in job.attempts if not attempt.ended]
    if live:
        found.add("lost", f"job {job.job} ended but attempts {live} did not")
    last = job.attempts[-1] if job.attempts else None
    if job.state == "succeeded":
        events = [row["event"] for rows in (last.witnesses if last else ()) for row in rows]
        if job.exit_code or events.count("stop") != 1:
            found.add("wrong", f"job {job.job} is called completed, its program saw another end")
    elif job.state == "failed":
        if not job.exit_code and not (last and last.number in job.killed):
            found.add("wrong", f"job {job.job} failed though nobody ended its program: {last.sentence if last else ''}")
    elif job.state == "lost":
        if not _was_given_up(job, max_losses):
            found.add("wrong", f"job {job.job} is lost though its supervisors were killed {len(job.orphaned)} times")
    elif not _was_asked(job, last):
        found.add("wrong", f"job {job.job} ended {job.state} though nobody asked for it")


def _was_asked(job: JobSeen, last: AttemptSeen | None) -> bool:
    """Whether somebody asked for this end; what was to finish and lost its supervisor before it saved is stopped."""
    orphaned = last is not None and last.number in job.orphaned
    if job.state == "stopped":
        return job.stopped or (job.finished and orphaned)
    return job.state == "finished_early" and job.finished


def _was_given_up(job: JobSeen, max_losses: int) -> bool:
    """Whether the run killed the supervisor of every attempt, more often than the platform queues a lost job again."""
    return len(job.attempts) > max_losses and all(attempt.number in job.orphaned for attempt in job.attempts)


def _never_twice(job: JobSeen, found: Findings) -> None:
    spans = []
    for attempt in job.attempts:
        if len(attempt.witnesses) > 1:
            found.add("twice", f"job {job.job} attempt {attempt.number} was run {len(attempt.witnesses)} times")
        spans += [(rows[0]["at"], rows[-1]["at"], attempt.number) for rows in attempt.witnesses if rows]
    spans.sort()
    for (_from, to, first), (begin, _to, second) in itertools.pairwise(spans):
        if begin < to:
            found.add("twice", f"job {job.job}: attempt {second} began while {first} ran")


def _log_is_whole(job: JobSeen, attempt: AttemptSeen, found: Findings) -> None:
    seen = [int(match[1]) for match in LINE.finditer(attempt.log)]
    where = f"job {job.job} attempt {attempt.number}"
    if seen != list(range(1, len(seen) + 1)):
        found.add("lines", f"{where}: log lines are not 1 to {len(seen)} in order")
    witnessed = sum(row["event"] == "line" for rows in attempt.witnesses for row in rows)
    if not witnessed <= len(seen) <= witnessed + len(attempt.witnesses):
        found.add("lines", f"{where}: {witnessed} lines witnessed, {len(seen)} in the log")
    if attempt.state == "succeeded" and len(seen) != job.lines:
        found.add("lines", f"{where}: {len(seen)} of {job.lines} lines")
