"""Gangs (jobs over several nodes): their ranks end together, and start again together or not at all.

The parts run under supervisors on different machines and meet only in the shared run directory. The first cause of
an end that nobody requested stands in one file, made once; every agent that reads it ends its own part, and the agent
of the first part says how the job goes on as soon as all have ended. Where the machine of the first part is silent,
any other does.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from aiplatform.lib import wording
from workers.core.models import Attempt
from workers.core.runs import RunDir
from workers.core.states import Event, Reason
from workers.execution import lost_attempts, tickets
from workers.execution.agent import verdicts
from workers.jobs import transitions
from workers.supervisor import records

CAUSE = "gang-ends.json"
GATHER_S = 25.0
"""RankEnd long the parts of a gang may take to end once one has; a part that does not answer by then is lost."""
LEAVE_S = 10.0
"""RankEnd long the others may take to end by themselves after the first part ended well."""
LADDER_S = 95.0
"""The same where all were asked to leave a checkpoint: each has its minute, and half a minute after TERM."""


class RankEnd(StrEnum):
    """How the rank ended that ends the others. Where several ended at once, the member listed first counts."""

    TIME = "time"  # its maximum run time is over: all leave a checkpoint
    NODE_DOWN = "node_down"  # its machine goes down: all leave a checkpoint, to go on elsewhere
    LOST = "lost"  # its supervisor or its machine is gone
    KILLED = "killed"  # somebody killed its program
    FAILED = "failed"


LEAVING = frozenset({RankEnd.TIME, RankEnd.NODE_DOWN})
"""Here nothing went wrong: every part is asked to leave a checkpoint, as for making room."""


@dataclass(frozen=True)
class Cause:
    """The rank that ended without a request, or whose time is over; `at` in unix seconds of its node."""

    rank: int
    how: RankEnd
    at: float


def blame(run: RunDir, rank: int, how: RankEnd) -> None:
    """Write down which rank ended first, and how; later causes change nothing."""
    try:
        handle = os.open(run.path / CAUSE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
    except FileExistsError:
        return
    with os.fdopen(handle, "w") as file:
        json.dump({"rank": rank, "how": how, "at": time.time()}, file)


def cause(run: RunDir) -> Cause | None:
    """Why the gang ends, or None while all is well."""
    record = records.read(run.path / CAUSE)
    # a version before this one wrote no `how`
    return Cause(record["rank"], RankEnd(record.get("how", RankEnd.LOST)), record["at"]) if record else None


def record_of(run: RunDir, rank: int) -> dict[str, Any] | None:
    """Exit record of a rank; None while it has not ended."""
    return records.read(tickets.rank_dir(run, rank) / records.EXIT)


def leaves(run: RunDir, rank: int) -> RankEnd | None:
    """Why the supervisor of a rank makes it leave a checkpoint by itself; None where it does not."""
    home = tickets.rank_dir(run, rank)
    record = records.read(home / records.EXIT) or records.read(home / records.STATUS) or {}
    return (
        RankEnd.TIME if record.get("limit") == "max_runtime" else RankEnd.NODE_DOWN if record.get("node_down") else None
    )


def blame_who_leaves(run: RunDir, rank: int) -> Cause | None:
    """Write down that a rank leaves, where it does, so that the others leave with it."""
    how = leaves(run, rank)
    if how is None:
        return None
    blame(run, rank, how)
    return cause(run)


def meaning(cause: Cause | None) -> dict[str, Any]:
    """What the cause adds to the exit record of rank 0, whose own limit may not have been the first to apply."""
    additions: dict[RankEnd, dict[str, Any]] = {
        RankEnd.TIME: {"limit": "max_runtime"},
        RankEnd.NODE_DOWN: {"node_down": True},
    }
    return additions.get(cause.how, {}) if cause else {}


def blame_for_end(run: RunDir, nodes: int, rank: int) -> Cause | None:
    """Find the cause behind a rank that failed without a request, and write it down.

    It often ended only because another did: its program found nobody to talk to. So all are asked.
    """
    causes = [
        (number, how) for number in range(nodes) if (how := leaves(run, number) or _killed(record_of(run, number)))
    ]
    order = list(RankEnd)
    blame(run, *min(causes, key=lambda pair: order.index(pair[1]), default=(rank, RankEnd.FAILED)))
    return cause(run)


def _killed(record: dict[str, Any] | None) -> RankEnd | None:
    """KILLED where neither supervisor, kernel nor the program itself ended it: it did nothing wrong then."""
    if record is None or record.get("signal") not in ("SIGKILL", "SIGTERM"):
        return None
    ours = record.get("killed") or record.get("termed") or record.get("limit") or record.get("oom")
    return None if ours else RankEnd.KILLED


def still_running(run: RunDir, nodes: int) -> list[int]:
    """Ranks that began and left no exit record yet."""
    homes = {rank: tickets.rank_dir(run, rank) for rank in range(nodes)}
    return [
        rank
        for rank, home in homes.items()
        if (home / records.SUPERVISOR).exists() and not (home / records.EXIT).exists()
    ]


def end(run: RunDir, ranks: list[int]) -> None:
    """Request of the supervisors of these ranks, wherever they run, that they end them."""
    for rank in ranks:
        home = tickets.rank_dir(run, rank)
        if records.STRENGTH[records.read_request(home)] < records.STRENGTH["stop"]:
            records.write_request(home, "stop")


def end_attempt(attempt: Attempt, run: RunDir, cause: Cause) -> None:
    """End every rank and, once all have ended, the attempt. What was lost or killed goes on from its checkpoint.

    Raises:
        StaleReport, IllegalMove: it ended otherwise meanwhile.
    """
    silent = {cause.rank} if cause.how is RankEnd.LOST else set()  # nobody is left there to write how it ended
    left = [rank for rank in still_running(run, attempt.job.nodes) if rank not in silent]
    end(run, left)
    if left and time.time() - cause.at < GATHER_S:
        return
    if cause.how is RankEnd.FAILED:
        message, record = wording.message("job.rank_ended", rank=cause.rank + 1), record_of(run, cause.rank)
        if record:
            message = wording.message("job.rank_ended_so", rank=cause.rank + 1, how=verdicts.how_it_ended(record))
        is_over_disk = record is not None and record.get("limit") == "disk"
        reason = Reason.DISK_LIMIT if is_over_disk else Reason.GANG_PARTNER
        transitions.move(attempt.job_id, Event.EXITED_BAD, attempt=attempt.number, reason=reason, message=message)
        return
    code = "job.rank_killed" if cause.how is RankEnd.KILLED else "job.rank_ended"
    message, again = wording.message(code, rank=cause.rank + 1), wording.message("job.requeued_whole")
    lost_attempts.lose(attempt, reason=Reason.GANG_PARTNER, message=message, again=again)


class Gathering:
    """Waits, on the machine of rank 0, until every rank has ended. One per monitored attempt."""

    def __init__(self) -> None:
        self._since: float | None = None
        self.lost: list[int] = []

    def done(self, attempt: Attempt, run: RunDir, *, alone_s: float) -> bool:
        """Whether the end of rank 0 may count now; ends the other ranks meanwhile.

        Args:
            alone_s: how long the others may take to end by themselves, before they are told to.
        """
        if attempt.job.nodes == 1:
            return True
        at = time.monotonic()
        self._since = at if self._since is None else self._since
        waited, left = at - self._since, [rank for rank in still_running(run, attempt.job.nodes) if rank]
        if not left:
            return True
        if waited >= alone_s:
            end(run, left)
        if waited < alone_s + GATHER_S:
            return False
        self.lost = left
        return True
