"""Celery tasks of environments. Each calls one service and returns."""

from __future__ import annotations

from celery import shared_task

from training.environments import lifecycle


@shared_task(name="environments.look", ignore_result=True)
def look() -> None:
    """See which environments answer, warn those that are idle and stop those that stay so. Safe to run twice."""
    lifecycle.look_at_all()
