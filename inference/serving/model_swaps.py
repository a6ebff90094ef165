"""Give a service another model without a moment in which it does not answer.

A server with the new model is started next to the old one. Once it answers, the service's address leads to it; the old
one finishes what it is at and is stopped. Where the new one fails, the old one goes on answering.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid
from inference.registry import sweeps
from inference.registry.models import ModelVersion
from inference.serving import addresses, endpoints, host_assignment
from inference.serving.models import Service
from inference.serving.scaling import replicas
from workers.core.models import Job
from workers.core.states import JobState

#: So long the old server stays after the address leads to the new one: callers' ways are remembered for a second, and
#: what was asked before that takes its time.
DRAINING = timedelta(seconds=10)


def change_model(*, service: Service, version: ModelVersion, by: User) -> Service:
    """Serve another version: at once if the service is stopped, else when the new server is ready.

    A change that is under way is given up for the new one.

    Raises:
        CannotServe, Archived: the version cannot answer.
        Invalid: it answers with this version already.
    """
    if version.pk != service.model_version_id:
        endpoints.check(user=service.owner, model_version=version)
    with transaction.atomic():
        locked = Service.objects.select_for_update(of=("self",)).select_related("job", "next_job").get(pk=service.pk)
        if locked.model_version_id == version.pk and locked.next_job_id is None:
            message = _("%(name)s already serves %(model)s.") % {"name": locked.name, "model": version}
            raise Invalid(message, field="model_version")
        if locked.trials.filter(outcome="").exists():
            message = _("%(name)s has a rollout. Promote it or roll it back first.")
            raise Invalid(message % {"name": locked.name}, field="model_version")
        cancelled, locked.next_job, locked.next_version = locked.next_job, None, None
        endpoints.end(cancelled, by)
        if locked.model_version_id == version.pk:
            pass  # back to what answers: giving the other up is all
        elif locked.is_up and not locked.is_ending:
            locked.next_version, locked.next_job = version, _start_next(locked, version)
            replicas.start_matching(locked, version)
        else:
            locked.model_version = version
        locked.save(update_fields=["next_job", "next_version", "model_version", "updated_at"])
    return locked


def _start_next(held: Service, version: ModelVersion) -> Job:
    """What is to answer with another version: the shared process that the service is in, else a server of its own."""
    job: Job | None = held.job
    if job is None or not addresses.is_shared(job) or not host_assignment.fits(version):
        return endpoints.submit(held, version)
    host_assignment.refill(job)
    return job


def advance(service: Service) -> Service:
    """Take the next step of a change, if it is due: lead to the new server once it answers, stop the old one later."""
    if service.next_job_id is not None:
        _lead_over(service)
    if service.old_job_id is not None and service.swapped_at is not None and now() - service.swapped_at > DRAINING:
        old = service.old_job
        with transaction.atomic():
            if Service.objects.filter(pk=service.pk, old_job=old).update(old_job=None):
                service.old_job = None
                endpoints.end(old, None)
    return service


def _lead_over(service: Service) -> None:
    job: Job | None = service.next_job
    if job is None:
        return
    if service.job is not None and service.job.is_final and replicas.replace_first(service):
        service.refresh_from_db()
    if service.job is None or service.job.is_final:  # the old one has ended: nothing to wait for
        _take_over(service, ready=False)
        return
    if job.is_final or job.state != JobState.RUNNING:
        return  # it waits, starts, or failed; the page says which, and the old one answers
    where = addresses.place(job, service.pk, service.next_version_id)
    key = endpoints.key_for(job.pk, job.attempt_number)
    if where is not None and endpoints.is_ready(where, key) and not replicas.waits(service):
        _take_over(service, ready=True)


def _take_over(service: Service, *, ready: bool) -> None:
    """Make the next job the one that serves the address; only the first of concurrent calls does."""
    with transaction.atomic():
        locked = Service.objects.select_for_update(of=("self",)).select_related("job", "next_job").get(pk=service.pk)
        if locked.next_job_id != service.next_job_id or locked.next_job is None:
            return
        detached = None
        if locked.job_id != locked.next_job_id:  # else one process answers with both for a while
            detached, locked.old_job, locked.swapped_at = locked.old_job, locked.job, now()
        elif locked.job is not None:
            host_assignment.refill(locked.job)
        locked.job, locked.model_version = locked.next_job, locked.next_version
        locked.ready_attempt = locked.job.attempt_number if ready else 0
        locked.next_job, locked.next_version = None, None
        locked.save()
        endpoints.end(detached, None)
    service.refresh_from_db()


def refresh(service: Service) -> Service:
    """Look whether its servers answer, and take the next step of a change."""
    return advance(endpoints.refresh(service))


def sweep() -> None:
    """Advance all changes that are under way."""
    rows = Service.objects.exclude(next_job=None, old_job=None)
    for service in rows.select_related("job", "next_job", "old_job", "next_version__model", "owner"):
        with sweeps.kept_apart(f"service={service.pk} does not change its model"):
            advance(service)
