"""Services: make, start, stop, start again, delete; their key and their health."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Unpack

from django.db import IntegrityError, transaction
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, Refusals
from aiplatform.lib.titles import TITLE
from aiplatform.lib.wording import Message
from inference.registry import stages
from inference.registry.models import ModelVersion, Visibility
from inference.serving import host_assignment, requests, trial_closing, withdrawal
from inference.serving import limits as limits_
from inference.serving import replica_closing as scaling_closing
from inference.serving.addresses import Place, place
from inference.serving.limits import LIMITS, limits_of
from inference.serving.models import Service
from workers.core.models import Job, VirtualCluster
from workers.core.states import JobState
from workers.jobs import actions, submission
from workers.jobs.resource_request import Resources, cluster_for
from workers.jobs.transitions import StaleReport

KIND = "service"
KEY_HEADER = "x-aip-service-key"
MAX_ATTEMPTS = 3
DEFAULT_CPUS = 1.0
MAX_NAME = 50


#: Resources that a service requests each time it starts, with their defaults.
KEPT: Mapping[str, Any] = {
    "gpus_per_node": 0,
    "device_kind": "gpu",
    "device_model": "",
    "share": 8,
    "card_memory_mib": 0,
    "cpus": DEFAULT_CPUS,
    "memory_mib": 0,
    "max_disk_bytes": None,
    "priority": 0,
    "preemptible": False,
}


class CannotServe(DomainError, code="cannot_serve", field="model_version"): ...


class AlreadyUp(DomainError, code="already_running"): ...


class NotUp(DomainError, code="not_running"): ...


def create(
    *,
    user: User,
    name: str,
    model_version: ModelVersion,
    description: str = "",
    visibility: str = Visibility.PRIVATE,
    max_batch: int = 8,
    max_delay_ms: float = 2.0,
    limits: Mapping[str, int] = MappingProxyType({}),
    share_process: bool = False,
    **resources: Unpack[Resources],
) -> Service:
    """Create a service and start it.

    Args:
        name: "" takes the model's.
        resources: requested resources; without a cluster the user's current one. A service has no
            longest run time.
        max_batch: images of different callers answered in one run of the model.
        max_delay_ms: how long a batch waits for requests already on their way.
        limits: what it allows its callers, by the names of `LIMITS`.
        share_process: with other services of the user that request the same resources.

    Raises:
        CannotServe: the version has no ONNX file.
        CannotShare: it needs a process of its own, see `host_assignment.check`.
        Archived: the version is.
        NameTaken: the user has a service of this name.
        Invalid, NotAMember: a value is wrong.
    """
    if not name:
        taken = set(Service.objects.filter(owner=user).values_list("name", flat=True))
        name = titles.derive_name(model_version.model.name, taken=taken, room=MAX_NAME)
    resources.setdefault("cpus", DEFAULT_CPUS)
    refusals = Refusals()
    with refusals:
        check(user=user, name=name, model_version=model_version, visibility=visibility)
    with refusals:
        _check_numbers(max_batch=max_batch, max_delay_ms=max_delay_ms, cpus=resources["cpus"])
    with refusals:
        limits_.check(limits, {name: limit.default for name, limit in LIMITS.items()})
    with refusals:
        if share_process:
            host_assignment.check(version=model_version, gpus_per_node=resources.get("gpus_per_node", 0), limits=limits)
    with refusals:
        resources["cluster"] = cluster_for(user, resources.get("cluster"))
        if refusals:  # also report resources that no node has
            submission.check(user, KIND, **resources)
    refusals.end()
    options = {name: resources.get(name, otherwise) for name, otherwise in KEPT.items()} | {
        "cluster": resources["cluster"].pk,
        "max_batch": max_batch,
        "max_delay_ms": max_delay_ms,
        host_assignment.OPTION: share_process,
        **limits,
    }
    try:
        with transaction.atomic():
            service = Service.objects.create(
                name=name,
                slug=f"{titles.slug(name, KIND)}-{secrets.token_hex(4)}",
                description=description,
                owner=user,
                visibility=visibility,
                model_version=model_version,
                options=options,
            )
            return start_held(service)
    except IntegrityError:
        raise _name_taken(name) from None


def check(
    *,
    user: User,
    name: str = "",
    model_version: ModelVersion | None = None,
    visibility: str = Visibility.PRIVATE,
) -> None:
    """Check the fields of `create` without writing anything; the name "" is generated later."""
    refusals = Refusals()
    with refusals:
        if name and (not re.fullmatch(TITLE.regex, name) or len(name) > MAX_NAME):
            raise Invalid(TITLE.message, field="name")
        if name and Service.objects.filter(owner=user, name=name).exists():
            raise _name_taken(name)
    with refusals:
        if visibility not in Visibility.values:
            raise Invalid(_("The access of an endpoint must be private or public."), field="visibility")
    with refusals:
        if model_version is not None and not model_version.can_serve:
            raise CannotServe(_("%(model)s has no ONNX file and cannot be deployed.") % {"model": model_version})
        if model_version is not None:
            stages.check_in_use(model_version)
    refusals.end()


def _check_numbers(*, max_batch: int, max_delay_ms: float, cpus: float) -> None:
    refusals = Refusals()
    with refusals:
        if not 1 <= max_batch <= 256:
            raise Invalid(_("The batch size must be 1 to 256 images."), field="max_batch")
    with refusals:
        if not 0 <= max_delay_ms <= 1000:
            raise Invalid(_("The batch delay must be 0 to 1000 ms."), field="max_delay_ms")
    with refusals:
        if not 0.1 <= cpus <= 256:
            raise Invalid(_("An endpoint uses 0.1 to 256 cores."), field="cpus")
    refusals.end()


def _name_taken(name: str) -> NameTaken:
    return NameTaken(_("You already have an endpoint named “%(name)s”.") % {"name": name})


@transaction.atomic
def start(*, service: Service, by: User) -> Service:
    """Start a stopped service again: a new job, the same address.

    Raises:
        AlreadyUp: it runs, or waits for its place.
        ModelWithdrawn: its model was deleted, or is not shared with its owner any more.
    """
    service = Service.objects.select_for_update(of=("self",)).select_related("job", "owner").get(pk=service.pk)
    if service.is_up:
        raise AlreadyUp(_("%(name)s is not stopped.") % {"name": service.name})
    return start_held(service)


def start_held(service: Service) -> Service:
    """Give a service its first server; within a transaction that holds it.

    Raises:
        ModelWithdrawn, and what `submission.submit` refuses.
    """
    version = withdrawal.usable_version(service)
    shares = host_assignment.wants(service) and host_assignment.fits(version)
    service.job = _assign_process(service) if shares else submit(service, version)
    service.ready_attempt, service.asleep_at = 0, None
    service.save(update_fields=["job", "ready_attempt", "asleep_at", "updated_at"])
    return service


def submit(service: Service, version: ModelVersion) -> Job:
    """Queue a server of a service that answers with a version."""
    return submission.submit(
        owner=service.owner,
        cluster=_cluster(service),
        kind=KIND,
        name=service.name,
        spec={"service": service.pk, "model_version": version.pk, **service.options},
        **_requested_resources(service),
        restart=Job.Restart.ON_FAILURE,
    )


def _assign_process(service: Service) -> Job:
    """Return the process that a service shares; within a transaction that locks it."""
    return host_assignment.assign(
        service, cluster=_cluster(service), requested=_requested_resources(service), restart=Job.Restart.ON_FAILURE
    )


def _cluster(service: Service) -> VirtualCluster:
    return cluster_for(service.owner, VirtualCluster.objects.filter(pk=service.options["cluster"]).first())


def _requested_resources(service: Service) -> dict[str, Any]:
    """Return the resources that a service requests each time it starts."""
    return {name: service.options.get(name, otherwise) for name, otherwise in KEPT.items()}


@transaction.atomic
def stop(*, service: Service, by: User) -> Service:
    """Request a stop of all its servers; the address answers 410 until the service is started again.

    Raises:
        NotUp: it is stopped already.
    """
    held = Service.objects.select_for_update(of=("self",)).select_related("job").get(pk=service.pk)
    first = [held.job] if held.job is not None and held.is_up else []
    beside = _detach_other_servers(held)
    if not first and not beside and held.asleep_at is None:
        raise NotUp(_("%(name)s is already stopped.") % {"name": service.name})
    host_assignment.leave(held)  # others go on in there
    Service.objects.filter(pk=held.pk).update(next_job=None, next_version=None, old_job=None, asleep_at=None)
    for job in (*first, *beside):
        end(job, by)
    service.refresh_from_db()
    return service


def _detach_other_servers(service: Service) -> list[Job]:
    """Detach all servers except the first from a service: the next, the old, a trial's, and further ones.

    Within a transaction that holds it.
    """
    rows = Service.objects.select_related("next_job", "old_job").get(pk=service.pk)
    jobs = [rows.next_job, rows.old_job, *trial_closing.close_of(service.pk), *scaling_closing.close_of(service.pk)]
    return [job for job in jobs if job is not None and not job.is_final]


def end(job: Job | None, by: User | None) -> None:
    """Request a stop of a server that need not be there any more; a shared process stays while others need it."""
    if job is not None and not host_assignment.may_end(job):
        return
    for _try in range(MAX_ATTEMPTS):
        if job is None or job.is_final:
            return
        try:
            actions.stop(job, by=by)
        except StaleReport:  # moved at this moment: its next state can be stopped as well
            job.refresh_from_db()
        except DomainError:  # it is stopping by itself
            return
        else:
            return


@transaction.atomic
def edit(
    *,
    service: Service,
    description: str,
    visibility: str,
    limits: Mapping[str, int] = MappingProxyType({}),
    share_process: bool | None = None,
) -> Service:
    """Change a service while it runs; of its limits, the rate limit takes effect within a second.

    Args:
        limits: those to be changed, by the names of `LIMITS`; the others hold from its next start.
        share_process: None: as it is; holds from its next start.

    Raises:
        CannotShare, Invalid: a value is wrong.
    """
    refusals = Refusals()
    with refusals:
        if visibility not in Visibility.values:
            raise Invalid(_("The access of an endpoint must be private or public."), field="visibility")
    with refusals:
        limits_.check(limits, limits_of(service))
    shares_process = host_assignment.wants(service) if share_process is None else share_process
    with refusals:
        if shares_process:
            gpus = service.options.get("gpus_per_node", 0)
            host_assignment.check(
                version=service.model_version, gpus_per_node=gpus, limits={**limits_of(service), **limits}
            )
    refusals.end()
    locked = Service.objects.select_for_update(of=("self",)).select_related("job", "owner").get(pk=service.pk)
    locked.description, locked.visibility = description, visibility
    locked.options = {**locked.options, **limits, host_assignment.OPTION: shares_process}
    locked.sharing_message = Message() if shares_process else locked.sharing_message
    locked.save(update_fields=["description", "visibility", "options", "sharing_message", "updated_at"])
    if locked.asleep_at is not None and limits_of(locked)["min_replicas"] > 0:
        start_held(locked)  # it is to have a server always
    service.refresh_from_db()
    return service


@transaction.atomic
def delete(*, service: Service, by: User) -> None:
    """Remove a service; a running one is stopped. Its model stays."""
    held = Service.objects.select_for_update(of=("self",)).select_related("job").get(pk=service.pk)
    jobs = (held.job, *_detach_other_servers(held))
    service.delete()
    for job in jobs:
        end(job, by)


def key_for(job_id: int, attempt: int) -> str:
    """Return the key of one attempt, so that a reused port never answers for another model."""
    return salted_hmac("inference.service", f"{job_id}:{attempt}", algorithm="sha256").hexdigest()


def refresh(service: Service) -> Service:
    """Check whether a running service answers yet, and remember it."""
    job = service.job
    if job is None or job.state != JobState.RUNNING or service.answers:
        return service
    where = place(job, service.pk, service.model_version_id)
    if where is not None and is_ready(where, key_for(job.pk, job.attempt_number)):
        remember_ready(service, job.attempt_number)
    return service


def remember_ready(service: Service, attempt: int) -> None:
    """Record that this attempt has answered."""
    Service.objects.filter(pk=service.pk, job=service.job).update(ready_attempt=attempt)
    service.ready_attempt = attempt


def is_ready(where: Place, key: str) -> bool:
    """Return whether the server at an address reports that it is ready; takes at most 0.7 s."""
    path = f"{where.prefix}/v2/health/ready"
    try:
        with requests.connected(where, longest_s=requests.PROBE_S) as connection:
            status, _body = requests.send(connection, "GET", path, {KEY_HEADER: key}, max_bytes=1 << 16)
            return status == 200
    except requests.FAILURES:
        return False
