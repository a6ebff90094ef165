"""Jobs over several nodes: their parts end together, and start again together or not at all.

The parts run under supervisors on different machines and meet only in the shared run directory. The first cause of
an end that nobody wished stands in one file, made once; every agent that reads it ends its own part, and the agent
of the first part says how the job goes on as soon as all have ended.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from workers.models import Attempt
from workers.runs import RunDir
from workers.services import tickets
from workers.supervisor import records

CAUSE = "gang-ends.json"
GATHER_S = 25.0
"""How long the parts of a gang may take to end once one has; a part that does not answer by then is lost."""
LEAVE_S = 10.0
"""How long the others may take to end by themselves after the first part ended well."""


def blame(run: RunDir, rank: int, *, lost: bool) -> None:
    """Write down which part ended first; later causes change nothing."""
    try:
        handle = os.open(run.path / CAUSE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
    except FileExistsError:
        return
    with os.fdopen(handle, "w") as file:
        json.dump({"rank": rank, "lost": lost, "at": time.time()}, file)


def cause(run: RunDir) -> dict[str, Any] | None:
    """{"rank", "lost", "at"} of the part that ended first, or None while all is well."""
    return records.read(run.path / CAUSE)


def still_running(run: RunDir, nodes: int) -> list[int]:
    """Parts that began and left no exit record yet."""
    homes = {rank: tickets.rank_dir(run, rank) for rank in range(nodes)}
    return [
        rank
        for rank, home in homes.items()
        if (home / records.SUPERVISOR).exists() and not (home / records.EXIT).exists()
    ]


def end(run: RunDir, ranks: list[int]) -> None:
    """Let the supervisors of these parts end them, wherever they run."""
    for rank in ranks:
        home = tickets.rank_dir(run, rank)
        if records.read_wish(home) != "stop":
            records.write(home / records.WISH, "stop")


class Gathering:
    """Waiting, on the first part's machine, until every part has ended. One per watched attempt."""

    def __init__(self) -> None:
        self._since: float | None = None
        self.lost: list[int] = []

    def done(self, attempt: Attempt, run: RunDir, *, well: bool) -> bool:
        """Whether the end of the first part may count now; calls in the others meanwhile.

        Args:
            well: the first part ended with 0, so that the others may take a moment to do the same.
        """
        if attempt.job.nodes == 1:
            return True
        at = time.monotonic()
        self._since = at if self._since is None else self._since
        waited, left = at - self._since, [rank for rank in still_running(run, attempt.job.nodes) if rank]
        if not left:
            return True
        if not well or waited >= LEAVE_S:
            end(run, left)
        if waited < GATHER_S:
            return False
        self.lost = left
        return True
