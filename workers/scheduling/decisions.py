"""Decision record of the live scheduler at this moment."""

from __future__ import annotations

from django.utils.timezone import now

from workers.planning import planner_input
from workers.planning.planner import record
from workers.scheduling import reading


def live() -> record.Record:
    """What the scheduler would decide now, with everything it looks at. Nothing is applied."""
    moment = now()
    snapshot = reading.snapshot(moment)
    return record.decide(snapshot, moment.timestamp(), planner_input.POLICY)
