"""Celery tasks of workers. Each parses its ids, calls one service and returns."""

from __future__ import annotations

from celery import shared_task

from workers.execution import launching, publishing


@shared_task(name="workers.start", ignore_result=True)
def start(attempt_id: int, rank: int = 0) -> None:
    """Start one rank of an attempt on this node. Safe to run twice."""
    launching.start(attempt_id, rank)


@shared_task(name="workers.finish", ignore_result=True)
def finish(job_id: int) -> None:
    """Let the job's kind keep what the run left behind. Safe to run twice."""
    publishing.publish(job_id)
