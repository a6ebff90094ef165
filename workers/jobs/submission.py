"""Submission: puts a job into the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import read_once, wording
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from workers.core import kinds, scheduler_wakeup, wait_reasons
from workers.core.device_kinds import rules
from workers.core.models import Job, JobArray, JobEvent, VirtualCluster
from workers.jobs import approval, resource_request, root_rights
from workers.jobs import following as following_jobs
from workers.jobs.arrays import Indices
from workers.jobs.following import NOTHING, Following
from workers.jobs.resource_request import Resources
from workers.planning import planner_input
from workers.planning.planner.fit import why_never

MAX_PAIRS = 10_000
"""How many rows say what the jobs of one array follow."""


class NeverFits(DomainError, code="never_fits"):
    """No machine, or no limit, could ever hold this; the code of the reason is in `facts`."""


@transaction.atomic
def submit(
    *,
    owner: User,
    kind: str,
    name: str,
    spec: Mapping[str, Any] | None = None,
    restart: str = Job.Restart.NEVER,
    following: Following = NOTHING,
    **requested: Unpack[Resources],
) -> Job:
    """Queue one job.

    Args:
        spec: JSON-ready snapshot the kind needs to build the command again.
        following: the jobs it follows, and its retries.
        requested: what it asks of the machines, see `Resources`; the cluster is required.

    Raises:
        Invalid: a value out of range, a cluster the owner does not belong to, or a job that cannot be followed.
        NotAllowed: urgent, without the right to it.
        OverLimit: more cores or memory than a job of the cluster may use.
        NeverFits: even an empty platform could not hold it.
    """
    requested = check(owner, kind, following, **requested)
    common = _columns(owner, kind, spec, following, requested) | {"restart": restart}
    job = Job.objects.create(name=name[:100], **common)
    _write_events([job], following)
    return job


@transaction.atomic
def submit_array(
    *,
    owner: User,
    kind: str,
    name: str,
    indices: Indices,
    spec: Mapping[str, Any] | None = None,
    spec_of: Callable[[int], Mapping[str, Any]] | None = None,
    following: Following = NOTHING,
    **requested: Unpack[Resources],
) -> list[Job]:
    """Queue one job for each index, in their order; refuses what `submit` refuses.

    Args:
        spec_of: the spec of each index, where they differ.
    """
    requested = check(owner, kind, following, **requested)
    if len(indices.numbers) * len(following.needs()) > MAX_PAIRS:
        raise Invalid(
            _(
                "The jobs of this array would have more than %(most)s dependencies in total. Request fewer "
                "jobs or dependencies."
            )
            % {"most": MAX_PAIRS},
            field="array",
        )
    array = JobArray.objects.create(
        name=name[:100], owner=owner, cluster=requested["cluster"], indices=indices.text,
        size=len(indices.numbers), at_once=indices.at_once,
    )  # fmt: skip
    common = _columns(owner, kind, spec, following, requested) | {"array": array}
    jobs = Job.objects.bulk_create(
        [
            Job(
                name=f"{name[:90]}_{number}",
                array_index=number,
                **(common | {"spec": dict(spec_of(number))} if spec_of else common),
            )
            for number in indices.numbers
        ]
    )
    _write_events(jobs, following)
    return jobs


def _columns(
    owner: User, kind: str, spec: Mapping[str, Any] | None, following: Following, requested: Resources
) -> dict[str, Any]:
    lower, upper = resource_request.range_of(requested)
    return {
        "owner": owner, "kind": kind, "spec": dict(spec or {}), "wait_code": "new",
        "retries": following.retries, "retry_pause_s": following.retry_pause_s,
        **requested, "min_nodes": lower, "max_nodes": upper,
    }  # fmt: skip


def _write_events(jobs: Sequence[Job], following: Following) -> None:
    """Write the first line of each event log, and what each job follows."""
    queued = wording.message("job.queued")
    JobEvent.objects.bulk_create(
        JobEvent(job=job, attempt=0, event="queued", state=job.state, by=job.owner, message=queued) for job in jobs
    )
    following_jobs.save_many(jobs, following)
    approval.request(jobs)
    scheduler_wakeup.notify()


def check(owner: User, kind: str, following: Following = NOTHING, /, **requested: Unpack[Resources]) -> Resources:
    """Refuse at once what `submit` refuses, and write nothing; returns the request as the job gets it."""
    job_kind = kinds.get(kind)  # a typo is our bug: let it fly
    requested = {"preemptible": job_kind.preemptible, **requested}
    refusals = Refusals()
    with refusals:
        following_jobs.check(owner, following)
    with refusals:
        wanted = requested.get("device_kind", "gpu")
        if requested.get("gpus_per_node", 0) and wanted not in job_kind.device_kinds:
            facts = {"kind": job_kind.label, "device": rules(wanted).label}
            text = _("%(kind)s does not run on devices of kind %(device)s. Choose another device type.")
            raise Invalid(text % facts, field="device_kind")
    shaped = False
    with refusals:
        resource_request.check_shape(requested)
        shaped = True
    with refusals:
        root_rights.check(owner, job_kind, requested.get("root_inside", False))
    with refusals:
        resource_request.check_priority(owner, requested.get("priority", 0))
    with refusals:
        if not VirtualCluster.objects.visible_to(owner).filter(pk=requested["cluster"].pk).exists():
            raise Invalid(_("You are not a member of this cluster."), field="cluster")
        if shaped:  # other numbers mean nothing to machines
            with refusals:
                requested = resource_request.bounded(requested)
            check_fit(kind, **requested)
    refusals.end()
    return requested


def check_fit(kind: str, /, **requested: Unpack[Resources]) -> None:
    """Refuse what could never run.

    Raises:
        NeverFits: one for each number that is too large. While no machine has joined at all nothing is refused.
    """
    machines = read_once.get_or_read("machines", planner_input.machines)
    if not machines:
        return
    request, target = resource_request.request_of(requested), requested["cluster"]
    devices = read_once.get_or_read("devices", planner_input.devices)
    groups = read_once.get_or_read("groups", planner_input.resource_groups)
    cluster = read_once.get_or_read(("cluster", target.pk), lambda: planner_input.cluster_of(target))
    reasons = why_never(
        request, machines, devices, cluster, kind=kind, counts_as=kinds.class_of(kind), groups=groups,
        clusters=read_once.get_or_read("clusters", planner_input.clusters),
        preemptible=requested.get("preemptible", kinds.get(kind).preemptible),
    )  # fmt: skip
    refusals = Refusals()
    for never in reasons:
        with refusals:
            raise NeverFits(
                wait_reasons.sentence(never.code, never.args), field=never.field, reason=never.code, **never.args
            )
    refusals.end()
