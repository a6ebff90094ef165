"""Celery tasks of annotation; the work is in services."""

from __future__ import annotations

from celery import shared_task

from annotation.services import exports, task_creation


@shared_task(name="annotation.convert", ignore_result=True)
def convert(export_id: int) -> None:
    """Convert a set; safe to send twice."""
    exports.convert(export_id)


@shared_task(name="annotation.fill", ignore_result=True)
def create_tasks(set_id: int) -> None:
    """Take over the images and shapes of a large version; safe to send twice."""
    task_creation.create_tasks(set_id)


@shared_task(name="annotation.sweep", ignore_result=True)
def sweep() -> None:
    """Find conversions and sets whose message or worker was lost."""
    exports.sweep()
