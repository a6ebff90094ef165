"""What every kind of job with somebody's own code needs at its start."""

from __future__ import annotations

from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError
from workers.core.models import Attempt


class CannotRun(DomainError, code="cannot_run"):
    """The job was fine when it was submitted and no longer is."""


def meeting_place(attempt: Attempt) -> tuple[str, int]:
    """Address and port where the ranks of a job on several nodes meet: its first node, at the port leased for it.

    Raises:
        CannotRun: no port is leased.
    """
    first = attempt.allocations.filter(rank=0, port__isnull=False).select_related("node").order_by("pk").first()
    if first is None or first.port is None:
        raise CannotRun(_("The nodes have no common rendezvous address. Restore the job."))
    return first.node.address, first.port
