"""Celery's doors into workers. A task parses, calls one service, returns."""

from __future__ import annotations

from celery import shared_task

from workers.services import publishing


@shared_task(name="workers.finish", ignore_result=True)
def finish(job_id: int) -> None:
    """Let the job's kind keep what the run left behind. Safe to run twice."""
    publishing.publish(job_id)
