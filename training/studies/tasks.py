"""Celery tasks of studies."""

from __future__ import annotations

from celery import shared_task

from training.studies import advancing


@shared_task(name="studies.advance", ignore_result=True)
def advance(study_id: int) -> None:
    """Bring one study on: something about it is new."""
    advancing.advance(study_id)


@shared_task(name="studies.advance_due", ignore_result=True)
def advance_due() -> None:
    """Bring on all studies that have something to do."""
    advancing.advance_due()
