"""Which services share a process: those of one owner that ask the same of the machines, without a card.

A shared process is a job of its own kind. A service in it has that job as its `job`, like others that are in it, and
leaves it by having none; the last one that leaves ends it. What the process is to hold is read from these rows and
written into a folder, see shared_hosts/folders.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from inference.registry.models import ModelVersion
from inference.serving.addresses import KIND, is_shared
from inference.serving.models import Service
from workers.core.models import Job, VirtualCluster
from workers.core.states import FINAL, Desired, JobState
from workers.jobs import submission

OPTION = "share_process"  # among the options of a service
#: What those that share request alike; the rest is about devices.
ALIKE = ("cpus", "memory_mib", "max_disk_bytes", "priority", "preemptible")
MAX_SERVICES = 32  # services in one process
MAX_MIB = 256  # of the files of a model that shares


class CannotShare(DomainError, code="cannot_share", field=OPTION):
    """This service needs a process of its own."""


def wants(service: Service) -> bool:
    """Whether a service is to share a process."""
    return bool(service.options.get(OPTION))


def fits(version: ModelVersion) -> bool:
    """Whether a version is small enough for it."""
    return bool(version.size_bytes <= MAX_MIB << 20)


def check(*, version: ModelVersion | None, gpus_per_node: int, limits: Mapping[str, int]) -> None:
    """Check that a service can share a process; all errors are raised at once.

    Raises:
        CannotShare, Invalid: a card, a large model, or several servers are asked for.
    """
    refusals = Refusals()
    with refusals:
        if gpus_per_node:
            raise CannotShare(_("Endpoints share a process on the CPU only. Request no GPU, or disable sharing."))
    with refusals:
        if version is not None and not fits(version):
            message = _("%(model)s is larger than %(most)s MiB and needs its own process.")
            raise CannotShare(message % {"model": version, "most": MAX_MIB})
    with refusals:
        if limits.get("max_replicas", 1) > 1:
            message = _(
                "An endpoint that shares its process has one replica. Set the maximum to 1, or disable sharing."
            )
            raise Invalid(message, field="max_replicas")
    refusals.end()


def assign(service: Service, *, cluster: VirtualCluster, requested: Mapping[str, Any], restart: str) -> Job:
    """Return the job of the process that a service will share: one that has room, else a new one.

    Within a transaction that holds the service and then gives it this job.

    Args:
        requested: resources of the service; only services that request the same share a process.

    Raises:
        DomainError: see `submission.submit`.
    """
    _hold(service.owner_id)
    alike = {name: requested[name] for name in ALIKE}
    rows = Job.objects.filter(kind=KIND, owner=service.owner_id, cluster=cluster, desired=Desired.RUN)
    for job in rows.exclude(state__in=[*FINAL, JobState.STOPPING]).order_by("pk"):
        if job.spec.get("alike") == alike and residents(job).count() < MAX_SERVICES:
            break
    else:
        spec = {"alike": alike}
        job = submission.submit(
            owner=service.owner, cluster=cluster, kind=KIND, name="shared_services", spec=spec, restart=restart,
            **requested,
        )  # fmt: skip
    refill(job)
    return job


def refill(job: Job) -> None:
    """Send a shared process its services, after the transaction that changes them."""
    enqueue("inference.fill_host", job_id=job.pk)


def _hold(owner_id: int) -> None:
    """Let only one at a time enter or leave the processes of a person; within a transaction."""
    User.objects.select_for_update(no_key=True).filter(pk=owner_id).first()


def residents(job: Job) -> QuerySet[Service]:
    """The services that a shared process holds, or is to hold."""
    rows: QuerySet[Service] = Service.objects.filter(asleep_at=None, owner=job.owner_id)
    return rows.filter(Q(job=job) | Q(next_job=job))


def may_end(job: Job) -> bool:
    """Return whether a job may end; if other services share it, it only unloads those that left.

    Within a transaction, after the rows say who left.
    """
    if not is_shared(job):
        return True
    _hold(job.owner_id)
    if not residents(job).exists():
        return True
    refill(job)
    return False


def leave(service: Service) -> Job | None:
    """Take a service out of the process that it shares; its job may be ended if `may_end` allows it.

    Its row is written at once; what it has of servers of its own stays.
    """
    shared = next((job for job in (service.job, service.next_job) if is_shared(job)), None)
    if shared is None:
        return None
    changes: dict[str, Any] = {}
    if is_shared(service.job):
        changes |= {"job": None, "ready_attempt": 0}
    if is_shared(service.next_job):
        changes |= {"next_job": None, "next_version": None}
    with transaction.atomic():
        Service.objects.filter(pk=service.pk).update(**changes)
    for name, value in changes.items():
        setattr(service, name, value)
    return shared


def folder(job_id: int) -> Path:
    """Return the folder with the models of a shared process, next to the attempts of its job."""
    return Path(settings.DATA_ROOT) / "jobs" / str(job_id) / "models"
