"""Endpoint of a job: the address and port on which it listens."""

from __future__ import annotations

from workers.core.models import Allocation, Job


def endpoint(job: Job) -> tuple[str, int] | None:
    """(host, port) of the first port the job's live attempt leased, as the web sees it; None without one."""
    held = Allocation.objects.filter(
        attempt__job=job, attempt__number=job.attempt_number, released_at=None, port__isnull=False
    )
    row = held.order_by("rank", "pk").values_list("node__address", "port").first()
    return (row[0], row[1]) if row and row[1] is not None else None
