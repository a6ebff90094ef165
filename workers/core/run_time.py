"""Maximum run time of a job: its own limit, its cluster's, and what was granted on top."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Prefetch, QuerySet

from workers.core.models import Attempt, Job, JobEvent
from workers.core.states import Event


def runtime(job: Job) -> timedelta | None:
    """For how long an attempt of this job may run, pauses not counted; None is for ever."""
    return span_of(job.max_runtime, job.cluster.max_runtime, job.more_time)


def left(job: Job, attempt: Attempt, moment: datetime) -> timedelta | None:
    """How much of it an attempt that began has left; None is for ever, and negative where it is over."""
    limit = runtime(job)
    if limit is None or attempt.started_at is None:
        return None
    return limit - (moment - attempt.started_at - paused(attempt, moment))


def with_turns(path: str = "") -> Prefetch:
    """What lists fetch beforehand, so that `paused` asks nothing for each row. `path` leads to the job: "job__"."""
    return Prefetch(f"{path}events", _turns(), to_attr="turns")


def _turns() -> QuerySet[JobEvent]:
    return JobEvent.objects.filter(event__in=(Event.PAUSED, Event.EVICTED, Event.RESUMED)).order_by("pk")


def paused(attempt: Attempt, moment: datetime) -> timedelta:
    """How long an attempt stood still so far, by its event log."""
    job = attempt.job
    turns = job.turns if hasattr(job, "turns") else _turns().filter(job=job)
    total, since = timedelta(0), None
    for turn in turns:
        if turn.attempt != attempt.number:
            continue
        if since is not None:
            total += turn.at - since
        since = None if turn.event == Event.RESUMED else turn.at
    return total if since is None else total + (moment - since)


def span_of(own: timedelta | None, cluster: timedelta | None, more: timedelta) -> timedelta | None:
    """The shorter of a job's and its cluster's limit, and what was granted on top; None is no limit."""
    limit = shortest((own, cluster))
    return None if limit is None else limit + more


def shortest(spans: Iterable[timedelta | None]) -> timedelta | None:
    """The shortest of some limits; None means no limit."""
    return min((span for span in spans if span is not None), default=None)
