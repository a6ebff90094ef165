"""Celery tasks of environments. Each calls one service and returns."""

from __future__ import annotations

from celery import shared_task

from training.environments import lifecycle


@shared_task(name="environments.look", ignore_result=True)
def check_environments() -> None:
    """Check which workspaces respond, warn idle ones and stop those that stay idle. Safe to run twice."""
    lifecycle.look_at_all()
