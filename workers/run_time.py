"""Maximum run time of a job: its own limit, its cluster's, and what was granted on top."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from workers.models import Job


def runtime(job: Job) -> timedelta | None:
    """For how long an attempt of this job may run, pauses not counted; None is for ever."""
    return span_of(job.max_runtime, job.cluster.max_runtime, job.more_time)


def span_of(own: timedelta | None, cluster: timedelta | None, more: timedelta) -> timedelta | None:
    """The shorter of a job's and its cluster's limit, and what was granted on top; None is no limit."""
    limit = shortest((own, cluster))
    return None if limit is None else limit + more


def shortest(spans: Iterable[timedelta | None]) -> timedelta | None:
    """The shortest of some limits; None means no limit."""
    return min((span for span in spans if span is not None), default=None)
