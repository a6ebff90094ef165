"""Publishing: lets a job's kind keep what an attempt left behind, exactly once."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from django.db import InterfaceError, OperationalError
from django.db.models import F

from workers.core import kinds
from workers.core.models import Attempt, Job
from workers.jobs import announcing, listeners
from workers.jobs.output import metrics
from workers.jobs.output import report_ingestion as reporting

log = logging.getLogger(__name__)


def publish_each(job_ids: Iterable[int]) -> None:
    """Do this for several jobs; one that fails is logged and tried again by the agent's sweep."""
    for job_id in job_ids:
        try:
            publish(job_id)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("job=%s its results were not kept, this is tried again", job_id)


def publish(job_id: int) -> None:
    """Hand every ended attempt that was not handed over yet to the kind, oldest first.

    `published_attempt` is raised after the kind returned: a crash between repeats the call, and kinds
    take a repeated call. An attempt that is not the current one any more can no longer be raised over.
    """
    job = Job.objects.filter(pk=job_id).first()
    if job is None:
        return
    try:
        kind = kinds.get(job.kind)
    except KeyError:
        log.warning("job=%s kind=%s is not installed, nothing published", job_id, job.kind)
        return
    for attempt in waiting(job):
        metrics.ingest(attempt, at_most=metrics.MAX_BYTES)
        _ingest_files(attempt)
        try:
            kind.ended(job, attempt)
        finally:
            announcing.ended(job, attempt)
        Job.objects.filter(pk=job_id, published_attempt__lt=attempt.number).update(published_attempt=attempt.number)
    job.refresh_from_db(fields=["state"])
    if job.is_final:
        listeners.notify_ended(job)


def _ingest_files(attempt: Attempt) -> None:
    """Read the rest of the files that it reported in. Their content cannot keep the attempt from being handed over."""
    try:
        reporting.ingest(attempt, ended=True)
    except (OSError, ValueError):
        log.exception("job=%s attempt=%s its report files were not read", attempt.job_id, attempt.number)


def waiting(job: Job) -> list[Attempt]:
    """Ended attempts whose results are not published yet."""
    ended = job.attempts.filter(ended_at__isnull=False, number__gt=job.published_attempt)
    return list(ended.order_by("number"))


def unpublished(limit: int = 100) -> list[int]:
    """Jobs with such attempts, for the sweep."""
    rows = Attempt.objects.filter(ended_at__isnull=False, number__gt=F("job__published_attempt"))
    return list(rows.order_by("job").values_list("job_id", flat=True).distinct()[:limit])
