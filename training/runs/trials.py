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
    """Say that its current attempt is asked to finish because it is not worth going on."""
    job.spec = {**job.spec, MARK: {**job.spec.get(MARK, {}), "pruned": job.attempt_number}}
    job.save(update_fields=["spec"])


def of(job: Job) -> dict[str, Any]:
    """The mark; {} of what is no trial."""
    found = job.spec.get(MARK)
    return found if isinstance(found, dict) else {}


def is_pruned(job: Job, attempt: int) -> bool:
    """Whether this attempt ended because it was not worth going on: it leaves no result."""
    return attempt > 0 and of(job).get("pruned") == attempt


def tell(job: Job) -> None:
    """Have the study of a trial look at it now; a lost message only costs until the next sweep."""
    if number := of(job).get("id"):
        with transaction.atomic():
            enqueue("studies.advance", study_id=number)
