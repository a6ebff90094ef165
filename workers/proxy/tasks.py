"""Celery tasks of ports."""

from __future__ import annotations

from celery import shared_task

from workers.proxy import admissions


@shared_task(name="ports.sweep", ignore_result=True)
def sweep() -> None:
    """Delete admissions that are over. Safe to run twice."""
    admissions.sweep()
