"""Trainings that are trials of a study (`training.studies`): what their job says of that, and whom to tell of news.

The mark lies in the job's `spec`, so that nothing here has to know the tables of studies.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from aiplatform.lib.enqueue import enqueue
from workers.core.models import Job

MARK = "study"


def mark(job: Job, *, study: int, number: int) -> None:
    """Say in the job's spec which trial it is."""
    job.spec = {**job.spec, MARK: {"id": study, "trial": number}}
    job.save(update_fields=["spec"])


def mark_pruned(job: Job) -> None:
    """Mark that the current attempt was requested to finish because the trial is not promising."""
    job.spec = {**job.spec, MARK: {**job.spec.get(MARK, {}), "pruned": job.attempt_number}}
    job.save(update_fields=["spec"])


def read_mark(job: Job) -> dict[str, Any]:
    """Return the mark; {} if the job is no trial."""
    mark = job.spec.get(MARK)
    return mark if isinstance(mark, dict) else {}


def is_pruned(job: Job, attempt: int) -> bool:
    """Whether this attempt ended because it was not worth going on: it leaves no result."""
    return attempt > 0 and read_mark(job).get("pruned") == attempt


def notify_study(job: Job) -> None:
    """Let the study of a trial check it now; a lost message only delays it until the next sweep."""
    if number := read_mark(job).get("id"):
        with transaction.atomic():
            enqueue("studies.advance", study_id=number)
