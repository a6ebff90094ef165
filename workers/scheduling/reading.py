"""Reading planner input together with what machines allow to be evicted."""

from __future__ import annotations

from datetime import datetime

from workers.planning import planner_input
from workers.planning.planner.snapshot import Snapshot
from workers.resources.nodes import eviction_policy


def snapshot(moment: datetime, usage: planner_input.Usage | None = None, typical_s: float | None = None) -> Snapshot:
    """Read the platform as the planner sees it at `moment`.

    Args:
        usage, typical_s: see `planner_input.read`; None reads them now, which the scheduler does only once a minute.
    """
    return planner_input.read(
        moment,
        planner_input.read_usage(moment) if usage is None else usage,
        planner_input.read_typical(moment) if typical_s is None else typical_s,
        eviction_policy.spare_mib(moment),
    )
