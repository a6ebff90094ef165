"""Celery tasks of trainings. They call one service and are safe to run twice."""

from __future__ import annotations

from celery import shared_task

from training.runs import planned


@shared_task(name="training.begin_planned", ignore_result=True)
def begin_planned() -> None:
    """Submit the trainings whose data is imported by now."""
    planned.begin_due()
