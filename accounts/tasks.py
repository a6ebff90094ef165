"""Celery tasks of accounts. Each parses its arguments, calls one service and returns."""

from __future__ import annotations

from celery import shared_task
from django.db import OperationalError

from accounts.services import audit, batches, outbox, registration, sessions


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
    """Continue after lost messages, write deferred audit entries, delete old sessions, notify administrators."""
    batches.sweep()
    sessions.forget_old()
    audit.write_deferred()
    registration.notify_administrators()


@shared_task(
    name="accounts.write_deferred_audit_entries", ignore_result=True, autoretry_for=(OperationalError,),
    retry_backoff=True, max_retries=10,
)  # fmt: skip
def write_deferred_audit_entries() -> None:
    """Write entries of the audit trail that requests could not write without waiting. Safe to run twice."""
    audit.write_deferred()
