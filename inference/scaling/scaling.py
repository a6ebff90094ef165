"""Give a service as many servers as its callers need: start, lead requests there, drain, end.

The first server is `Service.job`; those beside it are rows of `ServiceReplica`. Whoever sees a caller wait asks for a
look (`nudge`), and a sweep looks every 20 seconds. A look takes the steps that are due, one at a time.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial

from celery import current_app
from django.core.cache import cache
from django.db import transaction
from django.db.models import Q
from django.utils.timezone import now

from aiplatform.lib import nudging, wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from inference.models import ModelVersion, Service
from inference.scaling import rule, sleeping, telling
from inference.scaling.tables import ServiceReplica
from inference.services import serving, withdrawing
from workers.models import Job
from workers.proxy import endpoints
from workers.states import JobState

log = logging.getLogger(__name__)
TASK = "inference.scale"
NUDGED_S = 3  # at most one look within so many seconds is asked for
#: So long a server stays after it gets no more requests: callers' ways are remembered for a second.
DRAINING = timedelta(seconds=10)
#: So long no further server is started after one has failed or could not be had.
REST_S = 60


def nudge(service: Service) -> None:
    """Ask for a look, if the service may grow; from within a request, so nothing waits."""
    if service.options.get("max_replicas", 1) <= 1 or not cache.add(f"scaling:nudged:{service.pk}", 1, NUDGED_S):
        return
    send = partial(current_app.send_task, TASK, args=[service.pk], retry=False, expires=20)
    nudging.attempt(send, f"task={TASK} service={service.pk}")


def look(service: Service) -> None:
    """Take the steps that are due."""
    tidy(service)
    service.refresh_from_db()
    if service.is_up and service.job is not None and service.next_job_id is None:
        _fit(service)
    sleeping.fall_asleep(service)


def tidy(service: Service) -> None:
    """See which answer, forget those that ended, end those that have drained, replace a first one that failed."""
    for row in service.replicas.select_related("job"):
        job: Job = row.job
        if job.is_final:
            if job.state in (JobState.FAILED, JobState.LOST):
                cache.set(f"scaling:rest:{service.pk}", 1, REST_S)
            row.delete()
        elif row.leaving_at is not None:
            if now() - row.leaving_at > DRAINING:
                row.delete()
                serving.end(job, None)
        elif row.version_id not in (service.model_version_id, service.next_version_id):
            leave(row)
        elif job.state == JobState.RUNNING and not row.answers:
            place = endpoints.endpoint(job)
            if place is not None and serving.answers(place, serving.key_for(job.pk, job.attempt_number)):
                ServiceReplica.objects.filter(pk=row.pk).update(ready_attempt=job.attempt_number)
    _replace_first(service)


def _replace_first(service: Service) -> None:
    """Let one of the others be the first, where the first has ended by itself."""
    with transaction.atomic():
        held = Service.objects.select_for_update(of=("self",)).select_related("job").get(pk=service.pk)
        if held.job is None or held.job.state not in (JobState.FAILED, JobState.LOST) or held.asleep_at is not None:
            return
        rows = held.replicas.select_related("job").filter(leaving_at=None, version=held.model_version_id)
        row = next((row for row in rows if row.answers), None)
        if row is None:
            return
        held.job, held.ready_attempt = row.job, row.ready_attempt
        held.save(update_fields=["job", "ready_attempt", "updated_at"])
        row.delete()


def leave(row: ServiceReplica) -> None:
    """Send a server no more requests; it ends what it is at, then `tidy` ends it."""
    ServiceReplica.objects.filter(pk=row.pk, leaving_at=None).update(leaving_at=now())


def _fit(service: Service) -> None:
    """Compare how many servers there are with how many are needed."""
    limits = serving.limits_of(service)
    rows = list(service.replicas.filter(leaving_at=None, version=service.model_version_id).select_related("job"))
    least, most = limits["min_replicas"], max(limits["max_replicas"], limits["min_replicas"], 1)
    if not rows and most == 1:
        return
    answering = [row.job for row in rows if row.answers] + ([service.job] if service.answers and service.job else [])
    seen = telling.look(answering) or rule.Look(None, 1.0, 0)  # nothing is known: neither more nor fewer
    target_s, there = limits["queue_ms"] / 1000, len(rows) + 1
    wanted = rule.wanted(
        seen, servers=len(answering), coming=there - len(answering), least=least, most=most, target_s=target_s,
        calm_s=_calm_s(service, rule.is_calm(seen, servers=len(answering), target_s=target_s)),
    )  # fmt: skip
    if wanted > there:
        _grow(service, there)
    elif wanted < there and rows:
        leave(rows[-1])
        cache.delete(f"scaling:calm:{service.pk}")


def _calm_s(service: Service, calm: bool) -> float:
    """How long one server less would have done."""
    name, moment = f"scaling:calm:{service.pk}", now().timestamp()
    if not calm:
        cache.delete(name)
        return 0.0
    since = cache.get(name)
    cache.set(name, moment if since is None else since, telling.REMEMBERED_S)
    return 0.0 if since is None else moment - since


def _grow(service: Service, there: int) -> None:
    """Start one more, unless somebody has meanwhile, or the last try failed a moment ago."""
    if cache.get(f"scaling:rest:{service.pk}"):
        return
    message = Message()
    try:
        with transaction.atomic():
            held = Service.objects.select_for_update(of=("self",)).select_related("job", "owner").get(pk=service.pk)
            rows = held.replicas.filter(leaving_at=None, version=held.model_version_id)
            if held.is_up and held.next_job_id is None and rows.count() + 1 == there:
                start(held, withdrawing.usable_version(held))
    except DomainError as refusal:  # a quota, or no such machine: what is there goes on
        message = wording.of_error(refusal)
        cache.set(f"scaling:rest:{service.pk}", 1, REST_S)
        log.info("service=%s cannot grow: %s", service.pk, refusal)
    if message != service.scaling_message:
        Service.objects.filter(pk=service.pk).update(scaling_message=message)


def start(service: Service, version: ModelVersion) -> ServiceReplica:
    """Queue one more server; within a transaction that holds the service.

    Raises:
        DomainError: see `submission.submit`.
    """
    row: ServiceReplica = service.replicas.create(version=version, job=serving.submit(service, version))
    return row


def sweep() -> None:
    """Look at all services that may grow, shrink or fall asleep."""
    rows = Service.objects.filter(asleep_at=None).exclude(job=None)
    several = Q(options__max_replicas__gt=1) | Q(options__min_replicas=0) | Q(replicas__isnull=False)
    for service in rows.filter(several | Q(options__min_replicas__gt=1)).distinct().select_related("job", "owner"):
        look(service)
