"""What happens to the work of a person whose account is deleted."""

from __future__ import annotations

from accounts.models import User
from workers.core.models import Job
from workers.core.states import FINAL, IllegalMove
from workers.jobs import actions


def stop_all(person: User, by: User) -> int:
    """Stop all running and waiting jobs of `person`; return how many."""
    requested = 0
    for job in Job.objects.filter(owner=person).exclude(state__in=FINAL):
        try:
            actions.stop(job, by=by)
        except IllegalMove:  # ended or stopping already
            continue
        requested += 1
    return requested
