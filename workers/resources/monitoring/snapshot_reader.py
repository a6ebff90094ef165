"""Reads the monitoring snapshot from the rows in a handful of queries."""

from __future__ import annotations

import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.db.models import Count, Max, Q

from accounts.models import Delivery
from aiplatform import __version__, env
from aiplatform.lib import redis_client
from aiplatform.lib.registry import Registry, dotted_name
from workers.core import held_back, leases
from workers.core.models import Attempt, Device, Job, Lease, Node
from workers.core.states import JobState
from workers.resources.monitoring.snapshot import Card, Machine, MonitoringSnapshot, Queue, Restarts, Share

log = logging.getLogger(__name__)

MAX_AGE = timedelta(seconds=60)
HOUR = timedelta(hours=1)
SLOWLY_S = 60.0
"""How often what changes slowly is read again."""
CERTIFICATE_S = 3600.0
BROKER_S = 1.0

Source = Callable[[], Iterable[Share]]
#: Each tells how much of things with a limit is used; asked about once a minute.
SHARES: Registry[Source] = Registry("source of shares", name=dotted_name)

register_shares = SHARES.register


@dataclass
class Slow:
    """Figures that need not be read at every look."""

    at: float = float("-inf")
    certificate_at: float = float("-inf")
    certificate_days: float | None = None
    ended: int = 0
    failed: int = 0
    undelivered: int = 0
    shares: tuple[Share, ...] = ()


class SnapshotReader:
    """Takes pictures. One per process that watches; remembers what changes slowly."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.slow = Slow()

    def read(self, moment: datetime, *, database_s: float = 0.0, unwatched_s: float = 0.0) -> MonitoringSnapshot:
        """Read the snapshot at `moment`, by the platform's clock."""
        self._read_slow(moment)
        nodes = list(Node.objects.exclude(state=Node.State.REMOVED).order_by("name"))
        lease = Lease.objects.filter(name=leases.SCHEDULER).first()
        return MonitoringSnapshot(
            version=__version__,
            machines=tuple(_machine(node, moment) for node in nodes),
            cards=_cards(moment),
            queues=_queues(moment),
            shares=self.slow.shares,
            restarts=_restarts(moment),
            scheduler_silent_s=(moment - lease.renewed_at).total_seconds() if lease else None,
            broker_s=broker_round_trip(),
            database_s=database_s,
            unwatched_s=unwatched_s,
            certificate_days=self.slow.certificate_days,
            ended=self.slow.ended,
            failed=self.slow.failed,
            undelivered=self.slow.undelivered,
        )

    def _read_slow(self, moment: datetime) -> None:
        due = self.clock()
        if due - self.slow.at < SLOWLY_S:
            return
        ended = Job.objects.filter(ended_at__gte=moment - HOUR).aggregate(
            all=Count("pk"), failed=Count("pk", filter=Q(state__in=(JobState.FAILED, JobState.LOST)))
        )
        given_up = Delivery.objects.filter(state=Delivery.State.FAILED, ended_at__gte=moment - HOUR)
        self.slow.at = due
        self.slow.ended, self.slow.failed = ended["all"], ended["failed"]
        self.slow.undelivered = given_up.count()
        self.slow.shares = tuple(share for source in SHARES for share in source())
        if due - self.slow.certificate_at >= CERTIFICATE_S:
            self.slow.certificate_at = due
            self.slow.certificate_days = certificate_days(env.BASE_URL)


def _machine(node: Node, moment: datetime) -> Machine:
    silent = moment - node.heartbeat_at
    facts: dict[str, Any] = node.facts if silent < MAX_AGE else {}
    return Machine(
        name=node.name,
        silent_s=max(0.0, silent.total_seconds()),
        cpu_percent=facts.get("cpu_percent"),
        memory_percent=_part(facts.get("memory_used_mib"), facts.get("memory_total_mib")),
        disk_free_percent=_part(facts.get("disk_free_bytes"), facts.get("disk_total_bytes")),
        inodes_free_percent=_part(facts.get("inodes_free"), facts.get("inodes_total")),
        clock_off_s=facts.get("clock_off_s"),
        version=str(facts.get("version", "")),
        unkillable=len(facts.get("unkillable", ())),
    )


def _part(part: float | None, total: float | None) -> float | None:
    return 100 * part / total if part is not None and total else None


def _cards(moment: datetime) -> tuple[Card, ...]:
    rows = Device.objects.exclude(kind=Device.Kind.CPU).exclude(node__state=Node.State.REMOVED)
    cards = []
    for row in rows.select_related("node"):
        sample = row.sample if moment - row.node.heartbeat_at < MAX_AGE else {}
        cards.append(
            Card(
                node=row.node.name,
                index=row.index,
                kind=row.kind,
                health=row.health,
                note=row.health_message,
                held=row.used > 0,
                util=sample.get("util"),
                memory_percent=_part(sample.get("memory_used_mib"), row.memory_mib),
                temperature_c=sample.get("temperature_c"),
            )
        )
    return tuple(cards)


def _queues(moment: datetime) -> tuple[Queue, ...]:
    """By cluster; a job that ran before waits since its attempt ended, not since it was first queued."""
    if not Job.objects.waiting().exists():
        return ()
    held = held_back.reasons(moment)  # these wait for something else than machines
    rows = Job.objects.waiting().annotate(ran=Max("attempts__ended_at"))
    waits: dict[str, list[float]] = {}
    for job, cluster, queued, ran in rows.values_list("pk", "cluster__name", "queued_at", "ran"):
        if job in held:
            continue
        since = max(queued, ran) if ran else queued
        waits.setdefault(cluster, []).append((moment - since).total_seconds())
    return tuple(Queue(cluster, len(spans), max(spans)) for cluster, spans in sorted(waits.items()))


def _restarts(moment: datetime) -> tuple[Restarts, ...]:
    failed = Attempt.objects.filter(
        job__restart=Job.Restart.ON_FAILURE, job__ended_at=None, state=JobState.FAILED, ended_at__gte=moment - HOUR
    )
    rows = failed.values_list("job_id", "job__name").annotate(count=Count("pk")).order_by("job_id")
    return tuple(Restarts(*row) for row in rows)


def broker_round_trip() -> float | None:
    """Seconds a round trip to the broker takes; None when it does not answer within a second."""
    if settings.CELERY_BROKER_URL.startswith("memory:"):
        return 0.0
    started_at = time.monotonic()
    try:
        with redis_client.connect(settings.REDIS_URL, timeout_s=BROKER_S) as client:
            client.ping()
    except (redis.RedisError, OSError):
        return None
    return time.monotonic() - started_at


def certificate_days(url: str) -> float | None:
    """Days until the certificate of an https address ends, 0 where it does not hold; None where none is seen."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        return None
    try:
        with (
            socket.create_connection((parts.hostname, parts.port or 443), 5) as plain,
            ssl.create_default_context().wrap_socket(plain, server_hostname=parts.hostname) as secured,
        ):
            ends = secured.getpeercert() or {}
    except ssl.SSLCertVerificationError:
        return 0.0
    except OSError as exc:
        log.info("certificate of %s not seen: %s", parts.hostname, exc)
        return None
    return (ssl.cert_time_to_seconds(str(ends["notAfter"])) - time.time()) / 86400
