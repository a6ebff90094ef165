"""Celery tasks of sample projects. They take ids, return nothing and are safe to run twice."""

from __future__ import annotations

from celery import shared_task

from aiplatform.pages.sample import creation


@shared_task(name="sample.advance", ignore_result=True)
def advance(project_id: int) -> None:
    """Create or remove the next objects of one sample project."""
    creation.advance(project_id)


@shared_task(name="sample.sweep", ignore_result=True)
def sweep() -> None:
    """Continue all sample projects with work left."""
    creation.sweep()
