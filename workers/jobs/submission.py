"""Submission: puts a job into the queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from workers import kinds, planner_input, scheduler_wakeup, wait_reasons
from workers.jobs import resource_request
from workers.jobs.resource_request import Resources
from workers.models import Job, JobEvent, VirtualCluster
from workers.planner.fit import why_never


class NeverFits(DomainError):
    """No machine, or no limit, could ever hold this; the code of the reason is in `facts`."""

    code = "never_fits"


@transaction.atomic
def submit(
    *,
    owner: User,
    kind: str,
    name: str,
    spec: Mapping[str, Any] | None = None,
    restart: str = Job.Restart.NEVER,
    **requested: Unpack[Resources],
) -> Job:
    """Queue one job.

    Args:
        spec: JSON-ready snapshot the kind needs to build the command again.
        asked: what it asks of the machines, see `Resources`; the cluster is required.

    Raises:
        Invalid: a value out of range, or a cluster the owner does not belong to.
        NotAllowed: urgent, without the right to it.
        OverLimit: more cores or memory than a job of the cluster may use.
        NeverFits: even an empty platform could not hold it.
    """
    requested = check(owner, kind, **requested)
    job = Job.objects.create(
        owner=owner, kind=kind, name=name[:100], spec=dict(spec or {}), restart=restart, wait_code="new", **requested
    )
    JobEvent.objects.create(
        job=job, attempt=0, event="queued", state=job.state, by=owner, message=wording.message("job.queued")
    )
    scheduler_wakeup.notify()
    return job


def check(owner: User, kind: str, /, **requested: Unpack[Resources]) -> Resources:
    """Refuse at once what `submit` refuses, and write nothing; returns the request as the job gets it."""
    about = kinds.get(kind)  # a typo is our bug: let it fly
    requested = {"preemptible": about.preemptible, **requested}
    found = Refusals()
    with found:
        resource_request.check_shape(requested)
    shaped = not found
    with found:
        resource_request.check_priority(owner, requested.get("priority", 0))
    with found:
        if not VirtualCluster.objects.visible_to(owner).filter(pk=requested["cluster"].pk).exists():
            raise Invalid(_("You do not belong to this cluster."), field="cluster")
        if shaped:  # other numbers mean nothing to machines
            with found:
                requested = resource_request.bounded(requested)
            check_fit(kind, **requested)
    found.end()
    return requested


def check_fit(kind: str, /, **requested: Unpack[Resources]) -> None:
    """Refuse what could never run.

    Raises:
        NeverFits: one for each number that is too large. While no machine has joined at all nothing is refused.
    """
    machines, devices = planner_input.machines(), planner_input.devices()
    if not machines:
        return
    request = resource_request.request_of(requested)
    cluster, groups = planner_input.cluster_of(requested["cluster"]), planner_input.resource_groups()
    reasons = why_never(
        request, machines, devices, cluster, kind=kind, counts_as=kinds.class_of(kind), groups=groups,
        clusters=planner_input.clusters(), preemptible=requested.get("preemptible", kinds.get(kind).preemptible),
    )  # fmt: skip
    found = Refusals()
    for never in reasons:
        with found:
            raise NeverFits(
                wait_reasons.sentence(never.code, never.args), field=never.field, reason=never.code, **never.args
            )
    found.end()
