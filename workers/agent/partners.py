"""Further nodes of one job, and supervisors whose attempt is over: their rows belong to somebody else."""

from __future__ import annotations

import logging
from datetime import timedelta

from workers.agent import gangs
from workers.agent.watch import WISHES, sweep, tell_limit
from workers.clock import now
from workers.models import Allocation
from workers.runs import RunDir
from workers.services import tickets
from workers.states import Desired
from workers.supervisor import records

log = logging.getLogger(__name__)

REMEMBERED = timedelta(days=14)
PATIENCE_S = 1.5
NEVER_S = 600  # a part that did not start by then hangs, and the others hold their devices for nothing


def look(node: str) -> list[tuple[int, int]]:
    """Bring the files of ranks above 0 on this node in line; return (attempt, rank) that should be started.

    The first node alone says how the job goes. A partner that fails or is lost ends the whole attempt:
    no half gang holds devices.
    """
    missing = []
    held = Allocation.objects.filter(node__name=node, released_at=None, rank__gt=0, attempt__ended_at=None)
    for row in held.select_related("attempt__job__cluster").order_by("attempt", "rank").distinct():
        attempt, job = row.attempt, row.attempt.job
        run = RunDir.of(job.pk, attempt.number)
        home = tickets.rank_dir(run, row.rank)
        kept = records.read(home / records.SUPERVISOR)
        if kept is None:
            waited_s = (now() - attempt.assigned_at).total_seconds()
            if waited_s > NEVER_S:
                gangs.blame(run, row.rank, lost=False)
            elif waited_s > PATIENCE_S and (attempt.pk, row.rank) not in missing:
                missing.append((attempt.pk, row.rank))
            continue
        ended = records.read(home / records.EXIT)
        if ended is None and records.is_alive(kept):
            word = WISHES[Desired(job.desired)] if gangs.cause(run) is None else "stop"
            if records.read_wish(home) != word:
                records.write(home / records.WISH, word)
            tell_limit(home, job)
        elif ended is None:
            sweep(run)  # its supervisor is gone; what it kept must not go on
            gangs.blame(run, row.rank, lost=True)
        elif ended.get("code") != 0 and job.desired in (Desired.RUN, Desired.FREEZE):
            gangs.blame(run, row.rank, lost=False)
    return missing


def end_stale(node: str) -> int:
    """Stop every supervisor on this node whose attempt is over by the rows; return how many.

    They are left by a node that was given up and came back, or by a gang that ended elsewhere.
    """
    ended = Allocation.objects.filter(node__name=node, attempt__ended_at__gt=now() - REMEMBERED)
    rows = ended.order_by("-attempt__ended_at").values_list("attempt__job", "attempt__number", "rank").distinct()[:500]
    stopped = 0
    for job, number, rank in rows:
        home = tickets.rank_dir(RunDir.of(job, number), rank)
        if (home / records.EXIT).exists() or not (home / records.SUPERVISOR).exists():
            continue
        if records.is_alive(records.read(home / records.SUPERVISOR)):
            if records.read_wish(home) != "stop":
                log.warning("job=%s attempt=%s is over but runs here, ended", job, number)
                records.write(home / records.WISH, "stop")
                stopped += 1
        elif rank == 0 and not (home / ".swept").exists():
            sweep(RunDir.of(job, number))
            (home / ".swept").touch()
    return stopped
