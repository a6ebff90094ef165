"""Ranks that run on this node: whole jobs, and single ranks of gangs."""

from __future__ import annotations

from dataclasses import dataclass, field

from workers.core.models import Allocation, Attempt, Device
from workers.core.runs import RunDir
from workers.execution import tickets
from workers.supervisor import records


@dataclass
class RankRun:
    """One live attempt and what it holds of this node."""

    attempt: Attempt
    rank: int
    held: list[Allocation] = field(default_factory=list)

    @property
    def cards(self) -> tuple[int, ...]:
        """Indices of its GPUs here; none while it is evicted from them."""
        if self.attempt.evicted_at is not None:
            return ()
        return tuple(row.device.index for row in self.held if row.device.kind == Device.Kind.GPU)

    @property
    def number(self) -> int | None:
        """Which node of a gang this is, from 1; None for a job on one node."""
        return self.rank + 1 if self.attempt.job.nodes > 1 else None

    @property
    def disk_bytes(self) -> int | None:
        """What it takes of its disk limit here, as its supervisor reported last; None without a limit."""
        home = tickets.rank_dir(RunDir.for_attempt(self.attempt.job_id, self.attempt.number), self.rank)
        used = (records.read(home / records.DISK) or {}).get("used_bytes")
        return used if isinstance(used, int) else None

    @property
    def root_pid(self) -> int | None:
        """Root process of the rank here, its supervisor or the first of a container; None before its start."""
        home = tickets.rank_dir(RunDir.for_attempt(self.attempt.job_id, self.attempt.number), self.rank)
        supervisor = records.read(home / records.SUPERVISOR)
        if supervisor and "container" in supervisor:
            return int(supervisor.get("child", {}).get("pid", 0)) or None
        return int(supervisor["pid"]) if supervisor else None


def list_for_node(node: str) -> list[RankRun]:
    """Every live attempt that holds devices of a node, oldest first."""
    held = Allocation.objects.filter(node__name=node, released_at=None, attempt__ended_at=None)
    if not held.exists():  # far cheaper than the rows with all their columns, and most nodes are idle at times
        return []
    runs: dict[int, RankRun] = {}
    rows = held.select_related("attempt__job__cluster", "device").order_by("attempt", "device__index", "pk")
    for row in rows:
        runs.setdefault(row.attempt_id, RankRun(row.attempt, row.rank)).held.append(row)
    return list(runs.values())
