"""Maximum run time of a job: its own limit, its cluster's, and what was granted on top."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from workers.models import Attempt, Job
from workers.states import Event


def runtime(job: Job) -> timedelta | None:
    """For how long an attempt of this job may run, pauses not counted; None is for ever."""
    return span_of(job.max_runtime, job.cluster.max_runtime, job.more_time)


def left(job: Job, attempt: Attempt, moment: datetime) -> timedelta | None:
    """How much of it an attempt that began has left; None is for ever, and negative where it is over."""
    limit = runtime(job)
    if limit is None or attempt.started_at is None:
        return None
    return limit - (moment - attempt.started_at - paused(attempt, moment))


def paused(attempt: Attempt, moment: datetime) -> timedelta:
    """How long an attempt stood still so far, by its event log."""
    turns = attempt.job.events.filter(attempt=attempt.number, event__in=(Event.PAUSED, Event.EVICTED, Event.RESUMED))
    total, since = timedelta(0), None
    for event, at in turns.order_by("pk").values_list("event", "at"):
        if since is not None:
            total += at - since
        since = None if event == Event.RESUMED else at
    return total if since is None else total + (moment - since)


def span_of(own: timedelta | None, cluster: timedelta | None, more: timedelta) -> timedelta | None:
    """The shorter of a job's and its cluster's limit, and what was granted on top; None is no limit."""
    limit = shortest((own, cluster))
    return None if limit is None else limit + more


def shortest(spans: Iterable[timedelta | None]) -> timedelta | None:
    """The shortest of some limits; None means no limit."""
    return min((span for span in spans if span is not None), default=None)
