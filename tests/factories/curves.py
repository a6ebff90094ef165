"""Points of curves, as a job would have reported them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.utils.timezone import now

from workers.core.models import Attempt
from workers.jobs.output import metrics


def report(attempt: Attempt, key: str, points: Iterable[tuple[int, float] | tuple[int, float, datetime]]) -> None:
    """Add points to a curve: step, value and moment, which is now where none is given."""
    moment = now()
    metrics.add(attempt, [(key, *point, moment)[:4] for point in points])
