"""Samples of machines and clusters: taken every ten seconds, rolled up, bounded, and read as curves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Avg, Count, Max, Min, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid
from workers.core.models import Allocation, ClusterSample, Device, Job, Node, NodeSample, VirtualCluster
from workers.core.models.nodes import SHARES_PER_DEVICE
from workers.core.states import LIVE, JobState

STEPS = (10, 60, 600)
RETENTION = {10: timedelta(minutes=65), 60: timedelta(hours=25), 600: timedelta(days=31)}
"""How long samples of each step stay: at most 390 + 1,500 + 4,464 rows per machine."""
SPANS = {"1h": (3600, 10), "6h": (6 * 3600, 60), "1d": (86400, 60), "7d": (7 * 86400, 600), "30d": (30 * 86400, 600)}
"""What a chart may show: name → (seconds, step)."""
MAX_AGE = timedelta(seconds=30)
NODE_FIGURES = ("cpu", "memory", "disk", "net_in", "net_out", "gpus", "gpus_held", "gpu_util", "gpu_memory")
CLUSTER_FIGURES = ("gpus", "running", "waiting")
CARDS = (Device.Kind.GPU, Device.Kind.NPU)


@dataclass(frozen=True)
class Curves:
    """Curves over one time axis: unix seconds, and a value or None per point."""

    times: list[int]
    series: dict[str, list[float | None]]
    step: int


def bucket(moment: datetime, step: int) -> datetime:
    """The start of the bucket of `step` seconds that holds `moment`."""
    return datetime.fromtimestamp(int(moment.timestamp()) // step * step, UTC)


def sample(moment: datetime) -> None:
    """Write one sample of every machine and cluster, roll up what is full, forget what is old. Safe to repeat."""
    at = bucket(moment, STEPS[0])
    if not NodeSample.objects.filter(step=STEPS[0], at=at).exists():
        NodeSample.objects.bulk_create(_nodes(at, moment), ignore_conflicts=True)
        ClusterSample.objects.bulk_create(_clusters(at), ignore_conflicts=True)
    for small, large in ((10, 60), (60, 600)):
        _roll(NodeSample.objects.all(), NodeSample, "node_id", NODE_FIGURES, small, large, moment)
        _roll(ClusterSample.objects.all(), ClusterSample, "cluster_id", CLUSTER_FIGURES, small, large, moment)
    for step, span in RETENTION.items():
        old = {"step": step, "at__lt": moment - span}
        for rows in (NodeSample.objects, ClusterSample.objects):
            if rows.filter(step=step, at__lt=moment - span - timedelta(seconds=10 * step)).exists():
                rows.filter(**old).delete()


def _nodes(at: datetime, moment: datetime) -> list[NodeSample]:
    devices: dict[int, list[Device]] = defaultdict(list)
    for device in Device.objects.filter(kind__in=CARDS, parent=None).exclude(health=Device.Health.GONE):
        devices[device.node_id].append(device)
    rows = []
    for node in Node.objects.exclude(state__in=(Node.State.REMOVED, Node.State.LOST)):
        fresh = moment - node.heartbeat_at < MAX_AGE
        facts, cards = (node.facts if fresh else {}), devices[node.pk]
        samples = [card.sample for card in cards] if fresh else []
        used = [(sample.get("memory_used_mib"), card.memory_mib) for sample, card in zip(samples, cards, strict=False)]
        rows.append(
            NodeSample(
                node=node,
                step=STEPS[0],
                at=at,
                cpu=facts.get("cpu_percent"),
                memory=_percent(facts.get("memory_used_mib"), facts.get("memory_total_mib")),
                disk=_used(facts.get("disk_free_bytes"), facts.get("disk_total_bytes")),
                net_in=facts.get("net_in_bps"),
                net_out=facts.get("net_out_bps"),
                gpus=len(cards),
                gpus_held=sum(min(card.used / card.capacity, 1.0) for card in cards if card.capacity),
                gpu_util=_mean(sample.get("util") for sample in samples),
                gpu_memory=_mean(_percent(part, total) for part, total in used),
            )
        )
    return rows


def _clusters(at: datetime) -> list[ClusterSample]:
    held = Allocation.objects.filter(released_at=None, attempt__evicted_at=None, device__kind__in=CARDS)
    shares = dict(held.values_list("attempt__job__cluster").annotate(sum=Sum("share")).order_by())
    counts = Job.objects.filter(state__in=(*LIVE, JobState.QUEUED)).values("cluster")
    jobs = {
        row["cluster"]: row
        for row in counts.annotate(
            waiting=Count("pk", filter=Q(state=JobState.QUEUED)), running=Count("pk", filter=Q(state__in=LIVE))
        ).order_by()
    }
    return [
        ClusterSample(
            cluster_id=pk,
            step=STEPS[0],
            at=at,
            gpus=shares.get(pk, 0) / SHARES_PER_DEVICE,
            running=jobs.get(pk, {}).get("running", 0),
            waiting=jobs.get(pk, {}).get("waiting", 0),
        )
        for pk in VirtualCluster.objects.open().values_list("pk", flat=True)
    ]


def _roll(
    rows: QuerySet[Any], model: Any, key: str, figures: Sequence[str], small: int, large: int, moment: datetime
) -> None:
    """Write the means of all full buckets of `large` seconds that are not written yet."""
    end = bucket(moment, large)
    newest = rows.filter(step=large).aggregate(at=Max("at"))["at"]
    if newest:
        begin = newest + timedelta(seconds=large)
    else:
        first = rows.filter(step=small).aggregate(at=Min("at"))["at"]
        if first is None:
            return
        begin = bucket(first, large)
    if begin >= end:
        return
    groups: dict[tuple[int, datetime], list[dict[str, Any]]] = defaultdict(list)
    for row in rows.filter(step=small, at__gte=begin, at__lt=end).values(key, "at", *figures):
        groups[row[key], bucket(row["at"], large)].append(row)
    made = []
    for (pk, at), members in groups.items():
        means: dict[str, Any] = {name: _mean(row[name] for row in members) for name in figures}
        made.append(model(**{key: pk}, step=large, at=at, **means))
    model.objects.bulk_create(made, ignore_conflicts=True)


def curves(user: User, *, span: str, moment: datetime, node: int | None = None) -> Curves:
    """Curves of all nodes together, or of one, over `span` (see SPANS) up to `moment`.

    Network and cards are sums over machines, the rest means.

    Raises:
        Invalid: another span.
    """
    rows, step = _select(NodeSample.objects.visible_to(user), span, moment)
    if node is not None:
        rows = rows.filter(node=node)
    summed = ("net_in", "net_out", "gpus", "gpus_held")
    requested = {f"_{name}": (Sum if name in summed else Avg)(name) for name in NODE_FIGURES}
    sums = list(rows.values("at").annotate(**requested).order_by("at"))
    return _curves([(row["at"], {name: row[f"_{name}"] for name in NODE_FIGURES}) for row in sums], step, NODE_FIGURES)


def cluster_curves(user: User, *, span: str, moment: datetime) -> Curves:
    """Cards held by each of the reader's clusters over `span`; the series are named by the clusters.

    Raises:
        Invalid: another span.
    """
    rows, step = _select(ClusterSample.objects.visible_to(user), span, moment)
    names: dict[int, str] = dict(VirtualCluster.objects.visible_to(user).values_list("pk", "name"))
    points: dict[datetime, dict[str, float]] = defaultdict(dict)
    for at, pk, gpus in rows.order_by("at").values_list("at", "cluster", "gpus"):
        if pk in names:
            points[at][names[pk]] = gpus
    return _curves(sorted(points.items()), step, sorted(names.values()))


def _select(rows: Any, span: str, moment: datetime) -> tuple[Any, int]:
    if span not in SPANS:
        raise Invalid(_("Request one of %(spans)s.") % {"spans": ", ".join(SPANS)})
    seconds, step = SPANS[span]
    begin = moment - timedelta(seconds=seconds)
    return rows.filter(step=step, at__gte=begin, at__lte=moment), step


def _curves(points: Iterable[tuple[datetime, dict[str, Any]]], step: int, names: Sequence[str]) -> Curves:
    """Columns; where samples are missing for longer than two steps the curve is cut by an empty point."""
    times: list[int] = []
    series: dict[str, list[float | None]] = {name: [] for name in names}
    for at, row in points:
        unix = int(at.timestamp())
        if times and unix - times[-1] > 2 * step:
            times.append(times[-1] + step)
            for column in series.values():
                column.append(None)
        times.append(unix)
        for name, column in series.items():
            value = row.get(name)
            column.append(None if value is None else round(value, 2))
    return Curves(times, series, step)


def day(user: User, begin: datetime) -> list[float | None]:
    """The share of cards in use (0 to 100) by hour of the day that begins at `begin`; None where nothing was sampled.

    Hours are those of its zone's clocks: where they are put forward one stays empty, where back one is twice as long.
    """
    rows = NodeSample.objects.visible_to(user).filter(at__gte=begin, at__lt=begin + timedelta(days=1), step=600)
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for at, gpus, held in rows.values_list("at", "gpus", "gpus_held"):
        hour = sums[at.astimezone(begin.tzinfo).hour]
        hour[0] += held
        hour[1] += gpus
    return [_percent(*sums[hour]) if hour in sums else None for hour in range(24)]


def _mean(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None


def _percent(part: float | None, total: float | None) -> float | None:
    return 100 * part / total if part is not None and total else None


def _used(free: float | None, total: float | None) -> float | None:
    percent = _percent(free, total)
    return None if percent is None else 100 - percent
