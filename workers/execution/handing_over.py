"""Handing over: what is sealed in a job's rows reaches the machine that starts it, which has no key to open it.

Only the server has the platform's secret key. When it places a job on another machine, it opens what the job's kind
says it needs and writes that into the run directory, as private as the ticket beside it, which holds the same. The
machine waits for the file, reads it, and removes it once its ticket is written or the attempt is refused. Where the
message was lost, a sweep finds the attempt; it removes what was written for one that is over by then.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from aiplatform import env
from aiplatform.lib import files, sealed
from workers.core import kinds
from workers.core.models import Allocation, Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import JobState
from workers.supervisor import records

HANDED = "handed.json"  # in the run directory; null: the server could not open it either
LOOKED_FOR = timedelta(hours=1)  # after their end; the sweep comes several times a minute
Opened = dict[str, dict[str, str]]


def opened(job: Job, run: RunDir) -> Opened:
    """What is sealed in the rows of a job, in the open, by the names that its kind gives.

    Raises:
        NotYet: this machine has no key, and the server has handed nothing over so far.
        Unsealable: it was sealed under another secret key of the platform.
    """
    try:
        return _open(job)
    except sealed.Unsealable:
        if not env.NODE_JOINED:
            raise
    try:
        values: Opened | None = json.loads((run.path / HANDED).read_bytes())
    except FileNotFoundError:
        raise kinds.NotYet(_("The secrets are being transferred to this node.")) from None
    if values is None:
        raise sealed.Unsealable
    return values


def is_needed(job: Job, node: str) -> bool:
    """Whether the machine of this name cannot open what the job needs."""
    return node != settings.NODE and bool(kinds.sealed_of(job))


def write(attempt: Attempt) -> bool:
    """Write what an attempt needs to start on another node; return whether it was new. Safe to repeat."""
    if env.NODE_JOINED:  # no server, so it has no key either
        return False
    run = RunDir.for_attempt(attempt.job_id, attempt.number)
    if (run.path / HANDED).exists() or (run.path / records.LAUNCH).exists() or not kinds.sealed_of(attempt.job):
        return False
    try:
        values: Opened | None = _open(attempt.job)
    except sealed.Unsealable:
        values = None
    run.path.mkdir(parents=True, exist_ok=True)
    with files.atomic_writer(run.path / HANDED) as file:
        os.fchmod(file.fileno(), 0o600)  # before anything is in it
        file.write(json.dumps(values).encode())
    if Attempt.objects.filter(pk=attempt.pk, ended_at=None).exists():
        return True
    forget(run)
    return False


def forget(run: RunDir) -> None:
    """Remove what was handed over: its ticket is written, or it never begins."""
    (run.path / HANDED).unlink(missing_ok=True)


def unserved() -> list[int]:
    """Attempts led from another machine that have not begun; the message for some of them may have been lost."""
    waiting = Allocation.objects.filter(released_at=None, attempt__ended_at=None, attempt__job__state=JobState.ASSIGNED)
    return sorted(set(_led_elsewhere(waiting).values_list("attempt_id", flat=True)))


def forget_ended() -> None:
    """Remove what was handed to attempts that are over: they ended while it was written, or their machine was lost."""
    since = timezone.now() - LOOKED_FOR
    over = Allocation.objects.filter(attempt__ended_at__gt=since, attempt__job__kind__in=kinds.sealing())
    for job, number in set(_led_elsewhere(over).values_list("attempt__job_id", "attempt__number")):
        forget(RunDir.for_attempt(job, number))


def _led_elsewhere(held: QuerySet[Allocation]) -> QuerySet[Allocation]:
    return held.filter(rank=0).exclude(node__name=settings.NODE)


def _open(job: Job) -> Opened:
    return {name: sealed.unseal(text) for name, text in kinds.sealed_of(job).items()}
