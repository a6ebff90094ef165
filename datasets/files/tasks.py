"""Celery tasks of home folders. They take nothing, return nothing and are safe to run twice."""

from __future__ import annotations

from celery import shared_task

from datasets.files import changes, usage


@shared_task(name="files.sweep", ignore_result=True)
def sweep() -> None:
    """Go on with what took too long: deleting, and measuring large homes."""
    changes.sweep()
    usage.sweep()
