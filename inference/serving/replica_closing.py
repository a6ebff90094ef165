"""The end of the further servers of a service, for those that stop it."""

from __future__ import annotations

from inference.serving.models import ServiceReplica
from workers.core.models import Job


def close_of(service_id: int) -> list[Job]:
    """Forget the further servers of a service, because it stops or goes; their jobs, to be ended."""
    rows = ServiceReplica.objects.filter(service=service_id).select_related("job")
    jobs = [row.job for row in rows]
    rows.delete()
    return jobs
