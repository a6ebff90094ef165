"""Services without a server while there are no requests: they fall asleep, and the next request wakes them."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils.timezone import now

from inference.serving import addresses, endpoints, replica_closing
from inference.serving.limits import limits_of
from inference.serving.models import Service

SPARE_S = 10  # a request that began at the last moment still gets its answer


def fall_asleep(service: Service) -> bool:
    """Stop the servers of a service without requests during its idle time; returns whether it did."""
    if not _may(service):
        return False
    with transaction.atomic():
        locked = Service.objects.select_for_update(of=("self",)).select_related("job").get(pk=service.pk)
        if not _may(locked):
            return False
        locked.asleep_at, locked.ready_attempt = now(), 0
        locked.save(update_fields=["asleep_at", "ready_attempt", "updated_at"])
        for job in (locked.job, *replica_closing.close_of(locked.pk)):
            endpoints.end(job, None)
    service.refresh_from_db()
    return True


def _may(service: Service) -> bool:
    limits = limits_of(service)
    if limits["min_replicas"] > 0 or not service.is_up or service.is_ending or not service.answers:
        return False
    if service.next_job_id is not None or service.trials.filter(outcome="").exists():
        return False
    started = service.job.started_at if service.job is not None else None
    if addresses.is_shared(service.job):  # which may have run long before the service came
        started = service.updated_at
    busy = [moment for moment in (service.asked_at, started) if moment is not None]
    idle = timedelta(seconds=max(60 * limits["idle_minutes"], limits["deadline_s"] + SPARE_S))
    return not busy or now() - max(busy) > idle


def wake(service: Service) -> Service:
    """Start a service that is asleep; one that is not stays as it is. Two at once start it once.

    Raises:
        ModelWithdrawn, and what `submission.submit` refuses.
    """
    with transaction.atomic():
        held = Service.objects.select_for_update(of=("self",)).select_related("job", "owner").get(pk=service.pk)
        if held.asleep_at is None:
            return held
        Service.objects.filter(pk=held.pk).update(asked_at=now())
        return endpoints.start_held(held)
