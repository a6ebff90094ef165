"""The platform's figures in Prometheus' text format, read from the rows at each scrape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Q, Sum
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from accounts.models import Delivery
from aiplatform import __version__
from aiplatform.lib import nudging
from workers.core.clock import now
from workers.core.models import Alarm, Allocation, Device, Job, Lease, Node, VirtualCluster
from workers.core.models.nodes import SHARES_PER_DEVICE
from workers.core.pass_metrics import CACHE_KEY
from workers.core.states import JobState
from workers.resources.monitoring.history import MAX_AGE

MIB = 1024 * 1024
_NODE = (
    ("cpu_percent", "Processor in use, 0 to 100", "cpu_percent", 1),
    ("memory_used_bytes", "Memory in use", "memory_used_mib", MIB),
    ("memory_total_bytes", "Memory there is", "memory_total_mib", MIB),
    ("disk_free_bytes", "Free on the disk of the data folder", "disk_free_bytes", 1),
    ("disk_total_bytes", "Size of the disk of the data folder", "disk_total_bytes", 1),
    ("network_receive_bytes_per_second", "Coming in over all interfaces", "net_in_bps", 1),
    ("network_transmit_bytes_per_second", "Going out over all interfaces", "net_out_bps", 1),
)
_CARD = (
    ("util_percent", "Load of the card, 0 to 100", "util", 1),
    ("memory_used_bytes", "Memory of the card in use", "memory_used_mib", MIB),
    ("temperature_celsius", "Temperature of the card", "temperature_c", 1),
    ("power_watts", "Power the card draws", "power_w", 1),
)


def text() -> bytes:
    """All figures, once. Labels hold names of machines, clusters, states and rules; never of people or jobs."""
    registry = CollectorRegistry()
    registry.register(_Figures())
    return generate_latest(registry)


def _gauge(name: str, help_text: str, rows: Iterable[tuple[tuple[str, ...], Any]], *labels: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"aiplatform_{name}", help_text, labels=labels)
    for values, figure in rows:
        if figure is not None:
            family.add_metric([str(value) for value in values], float(figure))
    return family


class _Figures(Collector):
    def describe(self) -> list[Any]:
        return []  # read at the scrape, not at registration

    def collect(self) -> Iterator[GaugeMetricFamily]:
        moment = now()
        yield _gauge("info", "Always 1; the version is a label", [((__version__,), 1)], "version")
        yield from _machines(moment)
        yield from _queue(moment)
        yield from _inner(moment)


def _machines(moment: datetime) -> Iterator[GaugeMetricFamily]:
    nodes = list(Node.objects.exclude(state=Node.State.REMOVED).order_by("name"))
    yield _gauge(
        "node_up", "1: heard of lately", [((n.name,), moment - n.heartbeat_at < MAX_AGE) for n in nodes], "node"
    )
    yield _gauge(
        "node_state", "Always 1; the state is a label", [((n.name, n.state), 1) for n in nodes], "node", "state"
    )
    fresh = [node for node in nodes if moment - node.heartbeat_at < MAX_AGE]
    for name, help_text, fact, factor in _NODE:
        rows = [((n.name,), n.facts[fact] * factor) for n in fresh if n.facts.get(fact) is not None]
        yield _gauge(f"node_{name}", help_text, rows, "node")
    devices = list(Device.objects.filter(node__in=nodes).select_related("node"))
    names = {device.pk: (device.node.name, device.kind, str(device.index)) for device in devices}
    label = ("node", "kind", "index")
    yield _gauge(
        "device_capacity_shares", "8 for a card or a core", [(names[d.pk], d.capacity) for d in devices], *label
    )
    yield _gauge("device_used_shares", "Shares that jobs hold", [(names[d.pk], d.used) for d in devices], *label)
    healthy = [(names[d.pk], d.health == Device.Health.OK) for d in devices]
    yield _gauge("device_healthy", "0: gone, sick, or used by others", healthy, *label)
    reporting = [d for d in devices if d.kind != Device.Kind.CPU and moment - d.node.heartbeat_at < MAX_AGE]
    for name, help_text, fact, factor in _CARD:
        rows_of_cards = [(names[d.pk], d.sample[fact] * factor) for d in reporting if d.sample.get(fact) is not None]
        yield _gauge(f"device_{name}", help_text, rows_of_cards, *label)


def _queue(moment: datetime) -> Iterator[GaugeMetricFamily]:
    counted = Job.objects.values_list("state", "kind").annotate(n=Count("pk")).order_by()
    yield _gauge("jobs", "Jobs by state and kind", [((s, k), n) for s, k, n in counted], "state", "kind")
    waiting = Count("jobs", filter=Q(jobs__state=JobState.QUEUED))
    lengths = VirtualCluster.objects.open().annotate(n=waiting).values_list("name", "n")
    yield _gauge("queue_length", "Jobs that wait, by cluster", [((name,), n) for name, n in lengths], "cluster")
    held = Allocation.objects.filter(released_at=None, attempt__evicted_at=None).exclude(device__kind=Device.Kind.CPU)
    shares = held.values_list("attempt__job__cluster__name").annotate(sum=Sum("share")).order_by()
    cards = [((name,), total / SHARES_PER_DEVICE) for name, total in shares]
    yield _gauge("cluster_cards_used", "Cards that a cluster's jobs hold", cards, "cluster")


def _inner(moment: datetime) -> Iterator[GaugeMetricFamily]:
    firing = Alarm.objects.filter(ended_at=None).exclude(raised_at=None)
    rows = firing.values_list("rule__key", "severity").annotate(n=Count("pk")).order_by()
    yield _gauge("alarms_firing", "Raised alarms", [((k, s), n) for k, s, n in rows], "rule", "severity")
    states = Delivery.objects.values_list("state").annotate(n=Count("pk")).order_by()
    yield _gauge("deliveries", "Mails and webhooks of the last 30 days", [((s,), n) for s, n in states], "state")
    leases = Lease.objects.exclude(holder="").values_list("name", "renewed_at")
    ages = [((name,), (moment - at).total_seconds()) for name, at in leases]
    yield _gauge("lease_age_seconds", "Since the acting process of a kind was last heard of", ages, "name")
    last_pass: dict[str, float] = {}
    nudging.attempt(lambda: last_pass.update(cache.get(CACHE_KEY) or {}), "pass time")
    yield _gauge("scheduler_pass_seconds", "The newest pass: snapshot, plan, writes", [((), last_pass.get("seconds"))])
    yield _gauge("scheduler_pass_waiting", "Jobs that waited in that pass", [((), last_pass.get("waiting"))])
