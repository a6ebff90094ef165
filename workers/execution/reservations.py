"""Reservations: a job that holds GPUs of one node for a process outside the queue, as long as that process lives.

The process keeps an exclusive lock on a file; the program of the job waits for the same lock and ends once it gets it.
So the GPUs are free again when the process ends, however it ends; the job's maximum run time holds beside that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from workers.core import pins
from workers.core.kinds import Capabilities, JobKind, Launch
from workers.core.models import Allocation, Attempt, Device, Job, Node, VirtualCluster
from workers.core.runs import RunDir
from workers.core.states import JobState
from workers.jobs import submission

LOCK = "owner.lock"
HOLD = """
import fcntl, sys
with open(sys.argv[1], "rb") as lock:
    fcntl.flock(lock, fcntl.LOCK_SH)
"""


class OwnerGone(DomainError, code="reservation_owner_gone"):
    """The process that the GPUs were reserved for has ended before the job began."""


class NotReserved(DomainError, code="not_reserved"):
    """No virtual cluster takes the reservation; the text is the last refusal."""


class ReservationKind(JobKind):
    """A job that computes nothing: it holds GPUs of the node that its spec names."""

    name = "gpu_reservation"
    label = gettext_lazy("GPU reservation")
    plural = gettext_lazy("GPU reservations")
    icon = "server"
    order = 95
    step = False
    offered = False
    idle_guard = False
    evictable = False
    can = Capabilities(pause=False, finish=False)

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        """Link the lock of the owner into the run directory.

        Raises:
            OwnerGone: the file of the lock is gone.
        """
        run.inputs.mkdir(parents=True, exist_ok=True)
        link = run.inputs / LOCK
        link.unlink(missing_ok=True)
        try:
            os.link(Path(settings.DATA_ROOT) / job.spec["lock"], link)
        except FileNotFoundError as exc:
            raise OwnerGone(wording.message("job.reservation_owner_gone")) from exc
        return Launch(argv=[sys.executable, "-I", "-S", "-c", HOLD, str(link)])


def register_pins() -> None:
    """Let each reservation start on its node alone; called once when the app is ready."""
    pins.register(pins.Source(ReservationKind.name, _nodes, list))


def _nodes(jobs: QuerySet[Job]) -> Mapping[int, str]:
    return dict(jobs.filter(kind=ReservationKind.name).values_list("pk", "spec__node"))


def submit(node: Node, *, gpus: int, lock: Path, name: str, max_runtime: timedelta, by: User) -> Job:
    """Queue a reservation of GPUs in the first virtual cluster that takes it.

    Args:
        lock: a file below AIP_DATA_ROOT that the calling process has locked.
        max_runtime: after which the job ends in any case.

    Raises:
        NotReserved: every cluster refuses.
    """
    spec = {"node": node.name, "lock": str(lock.relative_to(settings.DATA_ROOT))}
    refusal: DomainError | None = None
    for cluster in VirtualCluster.objects.visible_to(by):
        try:
            return submission.submit(
                owner=by, kind=ReservationKind.name, name=name, spec=spec, cluster=cluster,
                gpus_per_node=gpus, max_runtime=max_runtime, preemptible=False,
            )  # fmt: skip
        except DomainError as exc:
            refusal = exc
    raise NotReserved(str(refusal) if refusal else _("No virtual cluster exists. Create one first."))


def administrator() -> User | None:
    """The user in whose name a command of this node reserves GPUs."""
    users = User.objects.filter(is_active=True).order_by("pk")
    return next((user for user in users if user.can(Action.CLUSTER_MANAGE)), None)


def free_gpus(node: Node) -> list[Device]:
    """GPUs of a node that no job holds any share of."""
    return list(node.devices.filter(kind=Device.Kind.GPU, used=0, health=Device.Health.OK).order_by("index"))


def holding_jobs(node: Node) -> list[Job]:
    """Jobs that hold GPUs of a node now."""
    held = Allocation.objects.filter(node=node, released_at=None, device__kind=Device.Kind.GPU)
    return list(Job.objects.filter(pk__in=held.values("attempt__job")).order_by("pk"))


def reserved_gpus(job: Job) -> list[Device]:
    """The GPUs that a reservation holds; empty while it waits and after its end."""
    job.refresh_from_db()
    if job.state != JobState.RUNNING:
        return []
    held = Allocation.objects.filter(attempt__job=job, released_at=None, device__kind=Device.Kind.GPU)
    return [row.device for row in held.select_related("device").order_by("device__index")]
