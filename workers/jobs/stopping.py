"""Bulk stop: operators stop many jobs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accounts.models import User
from accounts.services import audit
from aiplatform.lib.errors import DomainError
from workers.core.models import Job
from workers.jobs import actions

MAX_AT_ONCE = 500


@dataclass(frozen=True)
class Stopped:
    """Numbers of the jobs whose stop was requested, and how many had ended already."""

    requested: tuple[int, ...]
    over: int


def stop_many(*, by: User, numbers: Sequence[int]) -> Stopped:
    """Stop up to 500 jobs that `by` may end; other numbers are passed over. One line of the audit trail for all."""
    requested: list[int] = []
    owners: set[str] = set()
    over = 0
    for job in Job.objects.editable_by(by).filter(pk__in=numbers[:MAX_AT_ONCE]).select_related("owner"):
        try:
            actions.stop(job, by=by)
        except DomainError:
            over += 1
            continue
        requested.append(job.pk)
        owners.add(job.owner.username)
    if requested:
        audit.record(
            by, "jobs_stopped", ", ".join(f"#{number}" for number in requested), jobs=requested, owners=sorted(owners)
        )
    return Stopped(tuple(requested), over)
