"""Environments looked at as the sweep does it, at moments of a test's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from training.environments import lifecycle
from training.environments.jupyter import Answers
from training.environments.models import Environment

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOTHING = Answers([], [])


def again(row) -> Environment:
    return Environment.objects.select_related("job__owner", "job__cluster").get(pk=row.pk)


def judged(row, answers, at=NOW):
    """The row after it was judged, as the sweep does it."""
    row = again(row)
    lifecycle.judge(row, row.job.attempts.get(number=row.job.attempt_number), answers, at)
    return again(row)


def looks(row, answers, *, until, since=NOW, every=timedelta(minutes=1)):
    """The row after it was looked at every minute."""
    at = since
    while at <= until:
        row = judged(row, answers, at)
        at += every
    return row
