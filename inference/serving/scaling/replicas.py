"""The servers beside the first: as many of another version before the address leads there, and who takes its place."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils.timezone import now

from inference.registry.models import ModelVersion
from inference.serving import endpoints
from inference.serving.addresses import place
from inference.serving.models import Service, ServiceReplica
from workers.core.states import JobState

#: So long a change waits for the servers beside the first one of the other version.
TIMEOUT = timedelta(seconds=60)


def start_matching(service: Service, version: ModelVersion) -> None:
    """Queue a server of the other version for each further server of the service; within a transaction."""
    service.replicas.exclude(version__in=[service.model_version_id, version.pk]).update(leaving_at=now())
    missing = service.replicas.filter(leaving_at=None, version=service.model_version_id).count()
    missing -= service.replicas.filter(leaving_at=None, version=version).count()
    for _number in range(missing):
        service.replicas.create(version=version, job=endpoints.submit(service, version))


def has_further(service: Service, version: ModelVersion) -> bool:
    """Return whether there are further servers of a version, running or queued, besides the first."""
    return bool(service.replicas.filter(leaving_at=None, version=version).exists())


def waits(service: Service) -> bool:
    """Whether some of them are still on their way; those that ended or take too long are not waited for.

    Whether they answer is seen by `see`, in the background: pages ask this too.
    """
    rows = service.replicas.filter(leaving_at=None, version=service.next_version_id).select_related("job")
    return any(not row.job.is_final and not row.answers and now() - row.created_at <= TIMEOUT for row in rows)


def see(row: ServiceReplica) -> None:
    """Look whether a server answers, and remember it."""
    job = row.job
    if job.state != JobState.RUNNING or row.answers:
        return
    where = place(job, row.service_id, row.version_id)
    if where is not None and endpoints.is_ready(where, endpoints.key_for(job.pk, job.attempt_number)):
        ServiceReplica.objects.filter(pk=row.pk).update(ready_attempt=job.attempt_number)


def replace_first(service: Service) -> bool:
    """Let one of the others be the first, where the first has ended by itself; whether that was so."""
    with transaction.atomic():
        held = Service.objects.select_for_update(of=("self",)).select_related("job").get(pk=service.pk)
        if held.job is None or held.job.state not in (JobState.FAILED, JobState.LOST) or held.asleep_at is not None:
            return False
        rows = held.replicas.select_related("job").filter(leaving_at=None, version=held.model_version_id)
        row = next((row for row in rows if row.answers), None)
        if row is None:
            return False
        held.job, held.ready_attempt = row.job, row.ready_attempt
        held.save(update_fields=["job", "ready_attempt", "updated_at"])
        row.delete()
    return True
