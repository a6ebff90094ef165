"""Celery's doors into accounts. A task parses, calls one service, returns."""

from __future__ import annotations

from celery import shared_task

from accounts.services import outbox


@shared_task(name="accounts.deliver", ignore_result=True)
def deliver(delivery_id: int) -> None:
    """Send one message. Safe to run twice."""
    outbox.deliver(delivery_id)


@shared_task(name="accounts.outbox", ignore_result=True)
def sweep() -> None:
    """Send what lost messages and failures left behind. Safe to run twice."""
    outbox.sweep()
