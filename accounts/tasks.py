"""Celery tasks of accounts. Each parses its arguments, calls one service and returns."""

from __future__ import annotations

from celery import shared_task

from accounts.services import batches, outbox, registration, sessions


@shared_task(name="accounts.deliver", ignore_result=True)
def deliver(delivery_id: int) -> None:
    """Send one message. Safe to run twice."""
    outbox.deliver(delivery_id)


@shared_task(name="accounts.outbox", ignore_result=True)
def sweep_outbox() -> None:
    """Send what lost messages and failures left behind. Safe to run twice."""
    outbox.sweep()


@shared_task(name="accounts.import_people", ignore_result=True)
def import_people(batch_id: int) -> None:
    """Make the accounts of one file. Safe to run twice."""
    batches.run(batch_id)


@shared_task(name="accounts.sweep", ignore_result=True)
def sweep() -> None:
    """Find what a lost message left behind, delete sessions that are over, notify administrators."""
    batches.sweep()
    sessions.forget_old()
    registration.notify_administrators()
