"""How the list of alarms that are over is sorted."""

from __future__ import annotations

from django.db.models import Case, IntegerField, Value, When

from aiplatform.lib.ordering import Ordering
from workers.monitoring.alarms import RANK

ENDED = Ordering(
    "-ended",
    seen="seen_at",
    ended="ended_at",
    severity=Case(
        *(When(severity=severity, then=Value(rank)) for severity, rank in RANK.items()),
        default=Value(0),
        output_field=IntegerField(),
    ),
)
