"""Give a service as many servers as its callers need: start, lead requests there, drain, end.

The first server is `Service.job`; those beside it are rows of `ServiceReplica`. Requests that are passed on ask for a
look, once in three seconds (`nudge`), and a sweep looks every 20 seconds. A look takes the steps that are due, one at
a time.
"""

from __future__ import annotations

import logging
import time
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
from inference.registry import sweeps
from inference.registry.models import ModelVersion
from inference.serving import addresses, endpoints, replica_closing, withdrawal
from inference.serving.limits import limits_of
from inference.serving.models import Service, ServiceReplica, ServiceTrial
from inference.serving.scaling import load, replicas, rule, sleep
from workers.core.models import Job
from workers.core.states import FINAL, JobState

log = logging.getLogger(__name__)
TASK = "inference.scale"
NUDGED_S, MAX_NUDGED_SERVICES = 3.0, 10_000  # at most one look within so many seconds is asked for by a process
STALE_AFTER = timedelta(minutes=2)
#: So long a server stays after it gets no more requests: callers' ways are remembered for a second.
DRAINING = timedelta(seconds=10)
#: So long no further server is started after one has failed or could not be had.
INTERVAL_S = 60


def nudge(service: Service) -> None:
    """Ask for a look, if the service may grow; from within a request, so nothing waits."""
    moment = time.monotonic()
    if service.options.get("max_replicas", 1) <= 1 or moment < _nudged.get(service.pk, 0.0):
        return
    if len(_nudged) > MAX_NUDGED_SERVICES:
        _nudged.clear()
    _nudged[service.pk] = moment + NUDGED_S
    send = partial(current_app.send_task, TASK, args=[service.pk], retry=False, expires=20)
    nudging.attempt(send, f"task={TASK} service={service.pk}")


_nudged: dict[int, float] = {}  # until when this process has asked for enough looks


def scale(service: Service) -> None:
    """Take the steps that are due."""
    tidy(endpoints.refresh(service))
    service.refresh_from_db()
    if service.is_up and not service.is_ending and not _changes(service):
        _fit(service)
    sleep.fall_asleep(service)


def _changes(service: Service) -> bool:
    """Whether it is on its way to another model, and that may still come about."""
    return service.next_job is not None and not service.next_job.is_final


def tidy(service: Service) -> None:
    """See which answer, forget those that ended, end those that have drained, replace a first one that failed."""
    wanted = {service.model_version_id, service.next_version_id if _changes(service) else None} - {None}
    for row in service.replicas.select_related("job"):
        job: Job = row.job
        if job.is_final:
            if job.state in (JobState.FAILED, JobState.LOST):
                cache.set(f"scaling:rest:{service.pk}", 1, INTERVAL_S)
            row.delete()
        elif row.leaving_at is not None:
            if now() - row.leaving_at > DRAINING:
                with transaction.atomic():
                    row.delete()
                    endpoints.end(job, None)
        elif row.version_id not in wanted:
            leave(row)
        else:
            replicas.see(row)
    replicas.replace_first(service)
    if service.job is not None and service.job.is_final and service.job.state not in (JobState.FAILED, JobState.LOST):
        with transaction.atomic():  # the job of the first one was stopped: that stops the service
            for job in replica_closing.close_of(service.pk):
                endpoints.end(job, None)


def leave(row: ServiceReplica) -> None:
    """Send a server no more requests; it ends what it is at, then `tidy` ends it."""
    ServiceReplica.objects.filter(pk=row.pk, leaving_at=None).update(leaving_at=now())


def _fit(service: Service) -> None:
    """Compare the number of servers with the number needed."""
    limits = limits_of(service)
    rows = list(service.replicas.filter(leaving_at=None, version=service.model_version_id).select_related("job"))
    min_servers, max_servers = limits["min_replicas"], max(limits["max_replicas"], limits["min_replicas"], 1)
    if not rows and max_servers == 1:
        return
    answering = [row.job for row in rows if row.answers] + ([service.job] if service.answers and service.job else [])
    load_sample = load.measure(answering) or rule.LoadSample(None, 1.0, 0)  # nothing is known: neither more nor fewer
    target_s, current = limits["queue_ms"] / 1000, len(rows) + 1
    wanted = rule.needed_servers(
        load_sample, servers=len(answering), coming=current - len(answering), min_servers=min_servers,
        max_servers=max_servers, target_s=target_s,
        calm_s=_calm_s(service, rule.is_calm(load_sample, servers=len(answering), target_s=target_s)),
    )  # fmt: skip
    if wanted > current:
        _grow(service, current)
    elif wanted < current and rows:
        leave(rows[-1])
        cache.delete(f"scaling:calm:{service.pk}")
    if wanted <= current and service.scaling_message:
        Service.objects.filter(pk=service.pk).update(scaling_message=Message())


def _calm_s(service: Service, calm: bool) -> float:
    """How long one server less would have done."""
    name, moment = f"scaling:calm:{service.pk}", now().timestamp()
    if not calm:
        cache.delete(name)
        return 0.0
    since = cache.get(name)
    cache.set(name, moment if since is None else since, load.REMEMBERED_S)
    return 0.0 if since is None else moment - since


def _grow(service: Service, current: int) -> None:
    """Start one more server, unless another call has, or the last try failed a moment ago."""
    if cache.get(f"scaling:rest:{service.pk}"):
        return
    message = Message()
    try:
        with transaction.atomic():
            locked = Service.objects.select_for_update(of=("self",)).select_related("job", "owner").get(pk=service.pk)
            rows = locked.replicas.filter(leaving_at=None, version=locked.model_version_id)
            if locked.is_up and not locked.is_ending and not _changes(locked) and rows.count() + 1 == current:
                start(locked, withdrawal.usable_version(locked))
    except DomainError as refusal:  # a quota, or no such machine: what is there goes on
        message = wording.of_error(refusal)
        cache.set(f"scaling:rest:{service.pk}", 1, INTERVAL_S)
        log.info("service=%s cannot grow: %s", service.pk, refusal)
    if message != service.scaling_message:
        Service.objects.filter(pk=service.pk).update(scaling_message=message)


def start(service: Service, version: ModelVersion) -> ServiceReplica:
    """Queue one more server; within a transaction that holds the service.

    Raises:
        DomainError: see `submission.submit`.
    """
    row: ServiceReplica = service.replicas.create(version=version, job=endpoints.submit(service, version))
    return row


def sweep() -> None:
    """Look at all services that may grow, shrink or fall asleep, and end servers that belong to none."""
    rows = Service.objects.filter(asleep_at=None).exclude(job=None)
    several = Q(options__max_replicas__gt=1) | Q(options__min_replicas=0) | Q(replicas__isnull=False)
    for service in rows.filter(several | Q(options__min_replicas__gt=1)).distinct().select_related("job", "owner"):
        with sweeps.kept_apart(f"service={service.pk} is not scaled"):
            scale(service)
    end_orphans()


def end_orphans() -> None:
    """End servers that no service refers to: a process was killed between detaching and ending one."""
    servers = Job.objects.filter(kind__in=[endpoints.KIND, addresses.KIND]).exclude(state__in=FINAL)
    old = servers.filter(created_at__lt=now() - STALE_AFTER)
    for job in old.exclude(pk__in=_server_jobs()):
        if job.pk not in _server_jobs():
            log.warning("job=%s is the server of no service, and is ended", job.pk)
            endpoints.end(job, None)


def _server_jobs() -> set[int]:
    """Jobs that are servers of a service.

    Trials and further servers become first ones, never the other way: read in this order none is missed that moves
    meanwhile.
    """
    numbers = set(ServiceTrial.objects.filter(outcome="").values_list("job", flat=True))
    numbers |= set(ServiceReplica.objects.values_list("job", flat=True))
    numbers |= {number for three in Service.objects.values_list("job", "next_job", "old_job") for number in three}
    return numbers - {None}
