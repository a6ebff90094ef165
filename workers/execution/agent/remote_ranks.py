"""Ranks on this node of jobs that another node leads, and supervisors whose attempt is over."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from pathlib import Path

from django.conf import settings

from workers.core.clock import now
from workers.core.models import Allocation, Attempt, Node
from workers.core.runs import RunDir
from workers.execution import tickets
from workers.execution.agent import containers, gangs, overdue
from workers.execution.agent.attempt_monitor import goes_on, request_for, sweep, write_limit
from workers.jobs import transitions
from workers.resources.nodes import unkillable
from workers.supervisor import records

log = logging.getLogger(__name__)

REMEMBERED = timedelta(days=14)
TIMEOUT_S = 1.5
START_TIMEOUT_S = 600  # a part that did not start by then hangs, and the others hold their devices for nothing
Watched = dict[Path, overdue.Overdue]
_SILENT = (Node.State.UNREACHABLE, Node.State.LOST)


def check_all(node: str, watched: Watched | None = None) -> list[tuple[int, int]]:
    """Reconcile the files of ranks above 0 on this node; return (attempt, rank) that should be started.

    The first node says how the job goes, for as long as it is heard. A partner that fails or is lost ends the whole
    attempt: no half gang holds devices.

    Args:
        watched: what is remembered from look to look, for each part of a gang.
    """
    watched = {} if watched is None else watched
    held = Allocation.objects.filter(node__name=node, released_at=None, rank__gt=0, attempt__ended_at=None)
    rows = held.select_related("attempt__job__cluster").order_by("attempt", "rank", "pk")
    parts = {(row.attempt_id, row.rank): row.attempt for row in reversed(rows)}
    homes = {tickets.rank_dir(RunDir.for_attempt(row.attempt.job_id, row.attempt.number), row.rank) for row in rows}
    for home in set(watched) - homes:
        del watched[home]
    missing = []
    for (pk, rank), attempt in sorted(parts.items()):
        try:
            if _check(attempt, rank, watched):
                missing.append((pk, rank))
        except (transitions.StaleReport, transitions.IllegalMove) as exc:
            log.info("job=%s attempt=%s: %s", attempt.job_id, attempt.number, exc)
    return missing


def _check(attempt: Attempt, rank: int, watched: Watched) -> bool:
    """Check one rank; return whether it should be started."""
    job, run = attempt.job, RunDir.for_attempt(attempt.job_id, attempt.number)
    home = tickets.rank_dir(run, rank)
    supervisor = records.read(home / records.SUPERVISOR)
    cause = gangs.cause(run) or gangs.blame_who_leaves(run, rank)
    if supervisor is None:
        waited_s = (now() - attempt.assigned_at).total_seconds()
        if waited_s > START_TIMEOUT_S:
            gangs.blame(run, rank, gangs.RankEnd.FAILED)
        return cause is None and TIMEOUT_S < waited_s <= START_TIMEOUT_S
    ended = records.read(home / records.EXIT)
    if ended is None and records.is_alive(supervisor):
        word = records.compatible_request(home, request_for(job, cause))
        if cause and cause.how not in gangs.LEAVING and word != "kill":
            word = "stop"
        before = records.read_request(home)
        if word != before and records.STRENGTH[word] >= records.STRENGTH[before]:
            records.write_request(home, word)
        write_limit(home, job)
        _report(
            attempt, watched.setdefault(home, overdue.Overdue()).enforce(home, supervisor, records.read_request(home))
        )
    elif ended is None:
        sweep(run)  # its supervisor is gone; what it kept must not go on
        if containers.remove(home):
            gangs.blame(run, rank, gangs.RankEnd.LOST)
    elif ended.get("unkillable"):
        _report(attempt, ended["unkillable"])
    elif cause is None and ended.get("code") != 0 and ended.get("requested") in ("run", "pause") and goes_on(job):
        gangs.blame_for_end(run, job.nodes, rank)
    if cause is not None:
        _stand_in(attempt, run, cause)
    return False


def _report(attempt: Attempt, stuck: list[int]) -> None:
    """Keep this machine from new work where nothing ends a part; the machine of the first part waits no longer."""
    if stuck:
        unkillable.report(settings.NODE, attempt.job, stuck)


def _stand_in(attempt: Attempt, run: RunDir, cause: gangs.Cause) -> None:
    """Say how a gang that ends goes on where the machine that should is silent: it may be what the others fell with."""
    alone_s = gangs.LADDER_S if cause.how in gangs.LEAVING else 0.0
    first = Node.objects.filter(allocations__attempt=attempt, allocations__rank=0, state__in=_SILENT)
    if time.time() - cause.at < alone_s + gangs.GATHER_S or not goes_on(attempt.job) or not first.exists():
        return
    gangs.end_attempt(attempt, run, gangs.Cause(0, gangs.RankEnd.LOST, cause.at))


def end_stale(node: str) -> int:
    """Stop every supervisor on this node whose attempt is over by the rows; return how many.

    They are left by a node that was given up and came back, or by a gang that ended elsewhere.
    """
    ended = Allocation.objects.filter(node__name=node, attempt__ended_at__gt=now() - REMEMBERED)
    rows = ended.order_by("-attempt__ended_at").values_list("attempt__job", "attempt__number", "rank").distinct()[:500]
    stopped = 0
    for job, number, rank in rows:
        home = tickets.rank_dir(RunDir.for_attempt(job, number), rank)
        if (home / records.EXIT).exists() or not (home / records.SUPERVISOR).exists():
            continue
        if records.is_alive(records.read(home / records.SUPERVISOR)):
            if records.read_request(home) != "stop":
                log.warning("job=%s attempt=%s is over but runs here, ended", job, number)
                records.write_request(home, "stop")
                stopped += 1
        elif rank == 0 and not (home / ".swept").exists():
            sweep(RunDir.for_attempt(job, number))
            (home / ".swept").touch()
    return stopped
