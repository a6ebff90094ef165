"""Backup reconciliation: sets jobs and machines right after the database was restored from an earlier moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction

from aiplatform.lib import wording
from workers.core.models import Job, Node
from workers.core.states import FINAL, Event, JobState, Reason
from workers.jobs import transitions


@dataclass(frozen=True)
class Settled:
    """`lost` are numbers of jobs; `waiting` jobs were left in the queue."""

    lost: tuple[int, ...]
    waiting: int


@transaction.atomic
def settle(*, made_at: datetime, keep_queue: bool) -> Settled:
    """End every job that had not ended at `made_at`: it may have run on, or begun, since; it must not run twice.

    Owners may restore theirs from the newest checkpoint. The machine we are on takes its own name over, whatever
    machine had it before.

    Args:
        keep_queue: jobs that waited go on waiting; for who knows that nothing ran since.
    """
    message = wording.message("job.after_backup", made_at=made_at)
    lost, waiting = [], 0
    for job in Job.objects.exclude(state__in=FINAL).order_by("pk"):
        if job.state == JobState.QUEUED and keep_queue:
            waiting += 1
            continue
        transitions.move(job.pk, Event.LOST, reason=Reason.OPERATOR, message=message)
        lost.append(job.pk)
    Node.objects.filter(name__iexact=settings.NODE).update(machine="")
    return Settled(tuple(lost), waiting)
