"""Resource request: what a job requests of the machines, validated the same way for every kind and face."""

from __future__ import annotations

from datetime import timedelta
from typing import TypedDict

from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import read_once, wording
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed, Refusals
from workers.core import disk_limits, machine_needs
from workers.core.device_kinds import CPU, GPU, KINDS, rules
from workers.core.models import Device, Job, Node, VirtualCluster
from workers.core.models.nodes import SHARES_PER_DEVICE
from workers.planning import planner_input
from workers.planning.planner.snapshot import Request
from workers.resources.clusters import bounds

MAX_NODES = 1000
MAX_CPUS = 4096.0
HIGHEST_PRIORITY = Job.URGENT - 1


class Resources(TypedDict, total=False):
    """Keyword arguments that every submitting service hands on to `submission.submit`.

    Attributes:
        cluster: where it runs, see `cluster_for`.
        nodes: machines; all or none of them start,
        min_nodes: or as many as are free when it starts, so many at least; 0 is all or none.
        gpus_per_node: cards on each node; 0 runs on `cpus` cores instead.
        device_kind: which kind of cards, see `device_kinds`; "cpu" is the processor, without cards.
        device_model: which model of them; "" takes any.
        needs: what its image needs of a machine, see `machine_needs`.
        share: eighths of one card; 8 is whole cards.
        card_memory_mib: least memory that share must amount to; 0: whatever the card has.
        cpus: cores per node.
        memory_mib: most host memory per node, above which it is ended; 0: as much as the cluster allows a job.
        max_disk_bytes: most disk space on each node, above which it is ended; None is the cluster's limit, or none.
        priority: 0 to 99, higher starts first; 100 is urgent.
        root_inside: its programs are root of a user namespace of their own; for people who may.
        preemptible: may make room for urgent work and go on later.
        max_runtime: None is the cluster's limit, or none.
    """

    cluster: VirtualCluster
    nodes: int
    min_nodes: int
    gpus_per_node: int
    device_kind: str
    device_model: str
    needs: dict[str, int | str]
    share: int
    card_memory_mib: int
    cpus: float
    memory_mib: int
    max_disk_bytes: int | None
    priority: int
    root_inside: bool
    preemptible: bool
    max_runtime: timedelta | None


class NotAMember(DomainError, code="not_a_member", status=403, field="cluster"): ...


def cluster_for(user: User, cluster: VirtualCluster | None) -> VirtualCluster:
    """The cluster to run in: the requested one, else the current one, else the only one.

    Raises:
        NotAMember: the person does not belong to it, or to none at all.
    """
    memberships = user.memberships.select_related("cluster")
    if cluster is None:
        membership = memberships.order_by("-is_current", "pk").first()
        if membership is None:
            raise NotAMember(wording.message("job.no_cluster"))
        return membership.cluster
    if not memberships.filter(cluster=cluster).exists():
        raise NotAMember(wording.message("job.not_a_member", cluster=cluster.name))
    return cluster


def check_priority(user: User, priority: int) -> None:
    """Refuse a priority this person may not ask for.

    Raises:
        Invalid: it is not from 0 to 100.
        NotAllowed: urgent work needs a right of its own.
    """
    if priority == Job.URGENT and not user.can(Action.JOBS_URGENT):
        raise NotAllowed(
            _("Urgent priority requires a permission. Use a priority of up to %(limit)s.")
            % {"limit": HIGHEST_PRIORITY},
            field="priority",
            limit=HIGHEST_PRIORITY,
        )
    if not 0 <= priority <= Job.URGENT:
        raise Invalid(
            _("The priority must be from 0 to %(limit)s; %(urgent)s is urgent.")
            % {"limit": HIGHEST_PRIORITY, "urgent": Job.URGENT},
            field="priority",
        )


def request_of(requested: Resources) -> Request:
    """The request as the planner sees it."""
    return planner_input.request_of(
        nodes=requested.get("nodes", 1),
        gpus_per_node=requested.get("gpus_per_node", 0),
        cpus=requested.get("cpus", 1.0),
        share=requested.get("share", SHARES_PER_DEVICE),
        device_kind=requested.get("device_kind", "gpu"),
        card_memory_mib=requested.get("card_memory_mib", 0),
        root_inside=requested.get("root_inside", False),
        device_model=requested.get("device_model", ""),
        needs=machine_needs.of_row(requested.get("needs") or {}),
        min_nodes=range_of(requested)[0],
    )


def range_of(requested: Resources) -> tuple[int, int]:
    """The smallest and the largest number of nodes, where fewer than requested are accepted; (0, 0) otherwise."""
    lower, upper = requested.get("min_nodes", 0), requested.get("nodes", 1)
    return (lower, upper) if 0 < lower < upper else (0, 0)


def bounded(requested: Resources) -> Resources:
    """The request with the cores and the memory that the job gets, see `bounds.check`.

    Raises:
        OverLimit, OverDiskLimit: more than a job of this cluster may use.
    """
    kind = requested.get("device_kind", "gpu") if requested.get("gpus_per_node", 0) else "cpu"
    cpus, memory_mib = bounds.check(
        requested["cluster"], kind, requested.get("cpus", 1.0), requested.get("memory_mib", 0)
    )
    disk_limits.check(requested["cluster"], requested.get("max_disk_bytes"))
    bound: Resources = {**requested, "cpus": cpus, "memory_mib": memory_mib}
    if not requested.get("gpus_per_node", 0):  # cards that it takes after a restore are of the usual kind
        bound |= {"device_kind": GPU.name, "device_model": ""}
    return bound


def check_shape(requested: Resources) -> None:
    """Refuse invalid numbers, before nodes are considered.

    Raises:
        Invalid: naming the field.
    """
    nodes, gpus, share = (
        requested.get("nodes", 1),
        requested.get("gpus_per_node", 0),
        requested.get("share", SHARES_PER_DEVICE),
    )
    span, cpus = requested.get("max_runtime"), requested.get("cpus", 1.0)
    refusals = Refusals()
    with refusals:
        if not 1 <= nodes <= MAX_NODES:
            raise Invalid(_("Request 1 to %(most)s nodes.") % {"most": MAX_NODES}, field="nodes")
    with refusals:
        if not 0 <= requested.get("min_nodes", 0) <= nodes:
            raise Invalid(
                _("At least 1 node and at most the requested number; default: all of them at once."),
                field="min_nodes",
            )
    with refusals:
        if gpus < 0:
            raise Invalid(_("The number of GPUs must not be negative."), field="gpus_per_node")
    with refusals:
        _check_kind(requested.get("device_kind", GPU.name), gpus)
    with refusals:
        if not 0 < cpus <= MAX_CPUS:
            raise Invalid(_("Request more than 0 and at most %(most)s cores.") % {"most": int(MAX_CPUS)}, field="cpus")
    with refusals:
        if requested.get("memory_mib", 0) < 0:
            raise Invalid(_("The memory must not be negative."), field="memory_mib")
    with refusals:
        disk_limits.check_size(requested.get("max_disk_bytes"))
    with refusals:
        if span is not None and span <= timedelta(0):
            raise Invalid(_("The maximum run time must be greater than zero."), field="max_runtime")
    with refusals:
        _check_share(requested, share, gpus, nodes)
    refusals.end()


def _check_kind(kind: str, gpus: int) -> None:
    if kind not in KINDS:
        raise Invalid(_("Unknown device kind %(kind)s.") % {"kind": kind[:20]}, field="device_kind")
    if kind == CPU.name and gpus:
        raise Invalid(_("The CPU has no GPUs. Request 0 GPUs, or choose another device type."), field="gpus_per_node")


def _check_share(requested: Resources, share: int, gpus: int, nodes: int) -> None:
    if not 1 <= share <= SHARES_PER_DEVICE:
        raise Invalid(_("A share is 1 to 8 eighths of a GPU."), field="share")
    if share == SHARES_PER_DEVICE:
        return
    if gpus != 1 or nodes != 1:
        raise Invalid(_("A share needs one GPU on one node. Request 1 GPU, or whole GPUs."), field="share")
    if not rules(requested.get("device_kind", "gpu")).shareable:
        raise Invalid(_("Devices of this kind cannot be shared. Request whole devices."), field="share")


def shares_on_offer() -> list[tuple[int, int]]:
    """(eighths of a card, MiB of memory they amount to) for each size of share; empty where no card can be shared.

    The figure is that of the smallest card there is, so that every card keeps the promise.
    """
    cards = Device.objects.filter(health=Device.Health.OK, kind=Device.Kind.GPU).exclude(node__state=Node.State.LOST)
    sizes = read_once.get_or_read(
        "card sizes", lambda: sorted(filter(None, cards.values_list("memory_mib", flat=True)))
    )
    return [(eighths, sizes[0] * eighths // 8) for eighths in range(1, 8)] if sizes else []
