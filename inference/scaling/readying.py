"""As many servers of another version as a service has, before its address leads there."""

from __future__ import annotations

from datetime import timedelta

from django.utils.timezone import now

from inference.models import ModelVersion, Service
from inference.services import serving
from workers.proxy import endpoints
from workers.states import JobState

#: So long a change waits for the servers beside the first one of the other version.
PATIENCE = timedelta(seconds=60)


def start_as_many(service: Service, version: ModelVersion) -> None:
    """Queue a server of the other version for each that the service has beside its first; within a transaction."""
    service.replicas.exclude(version__in=[service.model_version_id, version.pk]).update(leaving_at=now())
    missing = service.replicas.filter(leaving_at=None, version=service.model_version_id).count()
    missing -= service.replicas.filter(leaving_at=None, version=version).count()
    for _number in range(missing):
        service.replicas.create(version=version, job=serving.submit(service, version))


def waits(service: Service) -> bool:
    """Whether some of them are still on their way; those that ended or take too long are not waited for."""
    for row in service.replicas.filter(leaving_at=None, version=service.next_version_id).select_related("job"):
        job = row.job
        if job.is_final or row.answers or now() - row.created_at > PATIENCE:
            continue
        place = endpoints.endpoint(job) if job.state == JobState.RUNNING else None
        if place is None or not serving.answers(place, serving.key_for(job.pk, job.attempt_number)):
            return True
        row.ready_attempt = job.attempt_number
        row.save(update_fields=["ready_attempt"])
    return False
