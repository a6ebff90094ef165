"""The scheduler's decision at this moment, on paper."""

from __future__ import annotations

from django.utils.timezone import now

from workers.scheduler import record
from workers.services import picture


def live() -> record.Record:
    """What the scheduler would decide now, with everything it looks at. Nothing is applied."""
    moment = now()
    snapshot = picture.read(moment, picture.read_usage(moment), picture.read_typical(moment))
    return record.decide(snapshot, moment.timestamp(), picture.POLICY)
