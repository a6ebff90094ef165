"""Planner input: machines, limits, running and waiting work, read from the rows in a handful of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, time, timedelta
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Avg, Count, ExpressionWrapper, F, Max, Q
from django.db.models import DurationField as SpanField

from aiplatform import env
from workers.core import held_back, kinds, machine_needs, pins, placement
from workers.core.count_classes import CLASSES, JOB
from workers.core.machine_needs import NOTHING, Needs
from workers.core.models import (
    Allocation,
    Attempt,
    ClusterDevice,
    Device,
    Job,
    JobEvent,
    Node,
    ResourceGroup,
    ResourceWindow,
    VirtualCluster,
)
from workers.core.run_time import span_of
from workers.core.states import COMPLETED, Desired, Event, JobState, Reason
from workers.planning.planner import snapshot as plain
from workers.planning.planner.order import HALF_LIFE_S, decayed_hours
from workers.planning.planner.plan import PREEMPTING
from workers.planning.planner.policy import Policy
from workers.planning.planner.snapshot import FULL_CARD

HISTORY = timedelta(seconds=5 * HALF_LIFE_S)
"""Older use weighs under 4 % and is not read."""
Usage = tuple[dict[int, float], dict[int, float]]
"""Decayed card-hours by owner, and by cluster."""
TYPICAL_S = 4 * 3600.0
LIMITS = tuple(job_class.column for job_class in CLASSES.values())
POLICY = Policy(min_run_s=env.MIN_RUN_S)
"""What the live scheduler and every preview of it go by."""


def read(
    moment: datetime,
    usage: Usage,
    typical_s: float,
    spare_mib: Mapping[int, int] = MappingProxyType({}),
) -> plain.Snapshot:
    """Read everything the planner needs, as it is at `moment`.

    Args:
        usage: decayed card-hours by owner and by cluster, see `read_usage`.
        typical_s: seconds to assume for work without a limit, see `read_typical`.
        spare_mib: host memory for evicted work by node, see `machines.eviction_policy`; none: nothing is evicted.
    """
    limits = dict(VirtualCluster.objects.values_list("pk", "max_runtime"))
    return plain.Snapshot(
        nodes=machines(spare_mib),
        devices=devices(),
        clusters=clusters(),
        running=_running(moment, limits, evicting=bool(spare_mib), estimating=True),
        waiting=_waiting(moment, limits),
        usage=usage[0],
        cluster_usage=usage[1],
        typical_runtime=typical_s,
        groups=resource_groups(),
        utc_offset_s=utc_offset_s(moment),
    )


def holding(moment: datetime) -> tuple[plain.Running, ...]:
    """Running work that holds devices now, for pages about usage."""
    runs = _running(moment, dict(VirtualCluster.objects.values_list("pk", "max_runtime")))
    return tuple(run for run in runs if not run.away)


def machines(spare_mib: Mapping[int, int] = MappingProxyType({})) -> tuple[plain.Node, ...]:
    """All nodes; those that are not live take no new work.

    Args:
        spare_mib: host memory for evicted work by node, see `machines.eviction_policy`.
    """
    rows = Node.objects.order_by("pk").values_list("pk", "name", "state", "root_inside", "sandbox_tier")
    return tuple(
        plain.Node(pk, name, state == Node.State.LIVE, spare_mib.get(pk, 0), root, tier)
        for pk, name, state, root, tier in rows
    )


def devices() -> tuple[plain.Device, ...]:
    """All devices of all nodes."""
    rows = Device.objects.order_by("pk").values_list(
        "pk", "node_id", "kind", "model", "group", "capacity", "memory_mib", "health"
    )
    machine_facts = {pk: machine_of(facts) for pk, facts in Node.objects.values_list("pk", "facts")}
    return tuple(
        plain.Device(pk, node, kind, model, group, capacity, health == Device.Health.OK, memory, *machine_facts[node])
        for pk, node, kind, model, group, capacity, memory, health in rows
    )


def machine_of(facts: Mapping[str, Any]) -> tuple[int, str]:
    """(major number of its driver, architecture of its CPU) from a node's facts; 0 and "" are unknown."""
    driver = machine_needs.driver_number(str(facts.get("driver") or ""))
    return driver, machine_needs.processor(str(facts.get("machine") or ""))


def clusters() -> tuple[plain.Cluster, ...]:
    """The limits of all clusters that were not closed."""
    return tuple(map(cluster_of, VirtualCluster.objects.open().prefetch_related("quotas")))


def cluster_of(cluster: VirtualCluster) -> plain.Cluster:
    """The limits of a cluster as the planner reads them."""
    limits = {name: getattr(cluster, job_class.column) for name, job_class in CLASSES.items()}
    per_user = {name: number for name, number in limits.items() if number is not None}
    return plain.Cluster(cluster.pk, cluster.name, quotas_of(cluster), per_user)


def request_of(
    nodes: int = 1,
    gpus_per_node: int = 0,
    cpus: float = 1.0,
    share: int = FULL_CARD,
    device_kind: str = "gpu",
    card_memory_mib: int = 0,
    node: int = 0,
    root_inside: bool = False,
    tiers: tuple[int, int] | None = None,
    device_model: str = "",
    needs: Needs = NOTHING,
    min_nodes: int = 0,
) -> plain.Request:
    """What a job asks for, in shares. A CPU job takes at least one share."""
    if gpus_per_node:
        return plain.Request(
            nodes=nodes, gpus=gpus_per_node, shares=share, device_kind=device_kind, card_memory_mib=card_memory_mib,
            node=node, root_inside=root_inside, tiers=tiers, model=device_model, needs=needs, least=min_nodes,
        )  # fmt: skip
    cpu_shares = max(1, round(cpus * FULL_CARD))
    return plain.Request(
        nodes=nodes, cpu_shares=cpu_shares, node=node, root_inside=root_inside, tiers=tiers, needs=needs,
        least=min_nodes,
    )  # fmt: skip


def _waiting(moment: datetime, limits: dict[int, timedelta | None]) -> tuple[plain.Waiting, ...]:
    columns = ("pk", "owner_id", "cluster_id", "nodes", "gpus_per_node", "cpus", "queued_at", "priority", "kind",
               "share", "device_kind", "card_memory_mib")  # fmt: skip
    later = ("max_runtime", "preemptible", "wait_code", "more_time", "root_inside", "device_model", "needs",
             "min_nodes", "max_nodes")  # fmt: skip
    rows = list(Job.objects.filter(state=JobState.QUEUED).values_list(*columns, *later))
    pinned = _pinned()
    held = held_back.reasons(moment)  # after the rows: what was queued in between is no job without its reasons
    tiers = placement.tiers_of_waiting()
    requests: dict[tuple[Any, ...], plain.Request] = {}
    classes = kinds.classes()
    expected = kinds.expected_runtimes(Job.objects.filter(state=JobState.QUEUED)) if rows else {}
    answering = kinds.answering_requests()
    waiting_jobs = []
    for (
        pk, owner, cluster, nodes, gpus, cpus, queued, priority, kind, share, device_kind, card_memory,
        span, preemptible, wait_code, more, root_inside, model, needs, min_nodes, max_nodes,
    ) in rows:  # fmt: skip
        if pk in held:
            continue
        wanted = machine_needs.of_row(needs) if needs else NOTHING
        more_of_it = (pinned.get(pk, 0), root_inside, tiers.get(pk), model, wanted, min_nodes)
        requested = (max_nodes or nodes, gpus, cpus, share, device_kind, card_memory, *more_of_it)
        if requested not in requests:
            requests[requested] = request_of(*requested)
        limit = span_of(span, limits.get(cluster), more)
        waiting_jobs.append(
            plain.Waiting(
                pk, owner, cluster, requests[requested], queued.timestamp(), priority,
                limit.total_seconds() if limit else None, preemptible, kind, wait_code == PREEMPTING,
                classes.get(kind, JOB.name), expected.get(pk), kind in answering,
            )
        )  # fmt: skip
    return tuple(waiting_jobs)


def _pinned() -> dict[int, int]:
    """The machine of waiting jobs that may start there alone."""
    names = pins.of_waiting()
    nodes = dict(Node.objects.filter(name__in=set(names.values())).values_list("name", "pk")) if names else {}
    return {job: nodes[name] for job, name in names.items() if name in nodes}


def _running(
    moment: datetime, limits: dict[int, timedelta | None], *, evicting: bool = False, estimating: bool = False
) -> tuple[plain.Running, ...]:
    """Everything that holds devices, by attempt, in any state of its job, and what was evicted from them.

    Args:
        evicting: whether to find out which jobs may be evicted; costs a query.
        estimating: whether to read the run times that kinds expect; costs a query.
    """
    rows = Allocation.objects.filter(released_at=None).order_by("pk")
    held: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    columns: dict[int, Any] = {}
    for row in rows.values_list(
        "attempt_id", "device_id", "share", "device__kind", "attempt__job_id", "attempt__job__owner_id",
        "attempt__job__cluster_id", "attempt__job__max_runtime", "attempt__job__more_time", "attempt__job__eta_s",
        "attempt__started_at", "attempt__assigned_at", "attempt__job__preemptible",
        "attempt__job__kind", "attempt__job__priority", "attempt__job__state", "attempt__job__desired",
        "attempt__job__makes_room_for", "attempt__job__queued_at", "attempt__evicted_at", "attempt__returned_at",
        "attempt__evicted_s",
    ):  # fmt: skip
        held[row[0]].append(row[1:4])
        columns[row[0]] = row[4:]
    gone = Attempt.objects.filter(job__attempts__in=columns, reason=Reason.PREEMPTED)
    times_preempted = (
        dict(gone.values_list("job").annotate(times=Count("pk", distinct=True)).order_by()) if columns else {}
    )
    if any(row[-2] or row[-3] for row in columns.values()):  # what was evicted and came back made room as well
        turns = JobEvent.objects.filter(job__attempts__in=columns, event=Event.EVICTED).values_list("job")
        for job, times in turns.annotate(times=Count("pk", distinct=True)).order_by():
            times_preempted[job] = times_preempted.get(job, 0) + times
    runs = []
    classes = kinds.classes()
    may_leave = _may_leave() if evicting else frozenset()
    by_kind: dict[str, list[int]] = defaultdict(list)
    for row in columns.values():
        by_kind[row[9]].append(row[0])
    idle = kinds.idle(by_kind)
    held_jobs = [row[0] for row in columns.values()] if estimating else []
    expected = kinds.expected_runtimes(Job.objects.filter(pk__in=held_jobs)) if held_jobs else {}
    for attempt, parts in held.items():
        (job, owner, cluster, span, more, eta_s, started, assigned, preemptible, kind, priority, state, desired,
         room_for, queued, evicted, back, evicted_s) = columns[attempt]  # fmt: skip
        limit = span_of(span, limits.get(cluster), more)
        ends = [] if limit is None else [((started or assigned) + limit).timestamp() + evicted_s]
        if eta_s is not None:
            ends.append(moment.timestamp() + eta_s)
        elif job in expected and (end := (started or assigned).timestamp() + expected[job]) > moment.timestamp():
            ends.append(end)
        cards = [(share, of_kind) for _, share, of_kind in parts if of_kind != Device.Kind.CPU]
        leaves = state in (JobState.PREEMPTING, JobState.STOPPING) or desired in (Desired.RELEASE, Desired.STOP)
        leaves = (leaves or desired == Desired.EVICT) and not evicted
        pairs = tuple((device, share) for device, share, _ in parts)
        runs.append(
            plain.Running(
                job, owner, cluster, () if evicted else pairs, min(ends, default=None),
                sum(share for share, _ in cards), preemptible, kind, cards[0][1] if cards else "gpu", priority,
                started_at=(back or started or assigned).timestamp(), preempting=leaves, for_job=room_for,
                askable=state in (JobState.RUNNING, JobState.PAUSED) and desired in (Desired.RUN, Desired.PAUSE),
                queued_at=queued.timestamp(), runtime=limit.total_seconds() if limit else None,
                times_preempted=times_preempted.get(job, 0),
                evictable=job in may_leave, away=pairs if evicted and desired == Desired.EVICT else (),
                evicted_since=evicted.timestamp() if evicted else 0.0, counts_as=classes.get(kind, JOB.name),
                idle=job in idle,
            )
        )  # fmt: skip
    return tuple(runs)


def _may_leave() -> frozenset[int]:
    """Jobs that cannot or need not save a checkpoint, but may be evicted; none of a kind that must not be."""
    running = Attempt.objects.filter(
        ended_at=None, state=JobState.RUNNING, eviction_refusal="", job__desired=Desired.RUN, job__nodes=1,
        job__gpus_per_node__gt=0, job__device_kind=Device.Kind.GPU, allocations__node__evicts=True,
        allocations__released_at=None,
    )  # fmt: skip
    jobs = [attempt.job for attempt in running.distinct().select_related("job")]
    return frozenset(
        job.pk
        for job in jobs
        if kinds.may_be_evicted(job.kind) and not (job.preemptible and kinds.capabilities_of(job).suspend)
    )


def read_usage(moment: datetime) -> Usage:
    """Decayed card-hours by owner and by cluster."""
    by_owner: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    by_cluster: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    rows = Allocation.objects.filter(attempt__assigned_at__gt=moment - HISTORY).exclude(device__kind=Device.Kind.CPU)
    for owner, cluster, assigned, released, share, evicted, evicted_s in rows.values_list(
        "attempt__job__owner_id", "attempt__job__cluster_id", "attempt__assigned_at", "released_at", "share",
        "attempt__evicted_at", "attempt__evicted_s",
    ):  # fmt: skip
        over = (evicted or released or moment).timestamp()
        span = (min(assigned.timestamp() + evicted_s, over), over, share / FULL_CARD)
        by_owner[owner].append(span)
        by_cluster[cluster].append(span)
    at = moment.timestamp()
    return (
        {owner: decayed_hours(spans, at) for owner, spans in by_owner.items()},
        {cluster: decayed_hours(spans, at) for cluster, spans in by_cluster.items()},
    )


def read_typical(moment: datetime) -> float:
    """Mean run time in seconds of what completed in the last weeks; four hours while nothing has."""
    ended = Job.objects.filter(state__in=COMPLETED, started_at__gt=moment - HISTORY, ended_at__isnull=False)
    span = ExpressionWrapper(F("ended_at") - F("started_at"), output_field=SpanField())
    mean = ended.aggregate(mean=Avg(span))["mean"]
    return max(60.0, mean.total_seconds()) if mean else TYPICAL_S


def signature() -> tuple[Any, ...]:
    """Changes whenever a new plan could differ from the last one, apart from the passing of time."""
    queued = Job.objects.filter(state=JobState.QUEUED)
    return (
        Job.objects.aggregate(newest=Max("pk"))["newest"],
        JobEvent.objects.aggregate(newest=Max("pk"))["newest"],
        queued.aggregate(all=Count("pk"), wanted=Count("pk", filter=Q(desired=Desired.RUN)), later=Max("not_before")),
        tuple(Node.objects.order_by("pk").values_list("pk", "state")),
        tuple(Device.objects.order_by("pk").values_list("pk", "used", "capacity", "health")),
        tuple(VirtualCluster.objects.order_by("pk").values_list("pk", *LIMITS)),
        _groups_signature(),
        tuple(ClusterDevice.objects.order_by("pk").values_list("cluster", "kind", "guaranteed", "borrows", "per_user")),
    )


def quotas_of(cluster: VirtualCluster) -> dict[str, plain.Quota]:
    """The cluster's quotas by kind, as the planner reads them."""
    return {row.kind: plain.Quota(row.guaranteed, row.borrows, row.per_user) for row in cluster.quotas.all()}


def resource_groups() -> tuple[plain.ResourceGroup, ...]:
    """All groups as the planner reads them; removed machines are left out."""
    rows = ResourceGroup.objects.prefetch_related("nodes", "windows").order_by("pk")
    return tuple(resource_group_of(row) for row in rows)


def utc_offset_s(moment: datetime) -> float:
    """Seconds by which the site's clocks (`AIP_TIME_ZONE`) are ahead of UTC at `moment`; summer time counts."""
    offset = moment.astimezone(ZoneInfo(settings.TIME_ZONE)).utcoffset()
    return offset.total_seconds() if offset else 0.0


def _groups_signature() -> tuple[object, ...]:
    """Changes whenever a group does."""
    return (
        tuple(ResourceGroup.objects.order_by("pk").values_list("pk", "kinds", "nodes")),
        tuple(ResourceWindow.objects.order_by("pk").values_list("group", "weekdays", "begins", "ends")),
    )


def resource_group_of(row: ResourceGroup) -> plain.ResourceGroup:
    """A group as the planner reads it: a count class among its kinds means all kinds of that class."""
    nodes = frozenset(node.pk for node in row.nodes.all() if node.state != Node.State.REMOVED)
    spans = tuple(
        plain.Window(_minutes(window.begins), _minutes(window.ends), frozenset(window.weekdays))
        for window in row.windows.all()
    )
    return plain.ResourceGroup(row.pk, row.name, nodes, kinds.meant_by(row.kinds), spans)


def _minutes(at: time) -> int:
    return at.hour * 60 + at.minute
