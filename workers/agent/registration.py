"""What this machine is and offers, written to its node row and devices."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from django.db.models import F
from django.utils.timezone import now

from aiplatform import __version__, env
from workers.models import Device, Node
from workers.models.nodes import SHARES_PER_DEVICE
from workers.services import tickets
from workers.supervisor import records
from workers.telemetry.probe import Card

log = logging.getLogger(__name__)


def register(name: str, cards: Iterable[Card]) -> Node:
    """Write node and devices as they are now; cards that are gone keep their row and say so."""
    cores = len(os.sched_getaffinity(0))
    node, _made = Node.objects.update_or_create(
        name=name,
        defaults={
            "boot_id": records.boot_id(),
            "heartbeat_at": now(),
            "cpu_cores": cores,
            "memory_mib": _memory_mib(),
            "sandbox_tier": tickets.tier()[0],
        },
    )
    if node.state != Node.State.DRAINING:
        Node.objects.filter(pk=node.pk).exclude(state=Node.State.LIVE).update(state=Node.State.LIVE)
    node.facts = {**node.facts, "version": __version__}
    node.save(update_fields=["facts"])
    shares = max(1, int(SHARES_PER_DEVICE * cores * env.CPU_OVERCOMMIT))
    _offer(node, Device.Kind.CPU, 0, {"model": _cpu_model(), "memory_mib": _memory_mib()}, shares)
    seen = set()
    for card in cards:
        seen.add(card.index)
        about = {"uuid": card.uuid, "model": card.name, "memory_mib": card.memory_mib, "group": card.group}
        _offer(node, Device.Kind.GPU, card.index, about | {"simulated": card.simulated}, SHARES_PER_DEVICE)
    gone = node.devices.filter(kind=Device.Kind.GPU).exclude(index__in=seen).exclude(health=Device.Health.GONE)
    for device in gone:
        log.warning("node=%s device=%s is gone", name, device.index)
    gone.update(health=Device.Health.GONE)
    return node


def _offer(node: Node, kind: str, index: int, about: dict[str, object], shares: int) -> None:
    device, _made = Device.objects.get_or_create(node=node, kind=kind, index=index, defaults={"capacity": shares})
    Device.objects.filter(pk=device.pk).update(**about, health=Device.Health.OK)
    # Never below what is held: a smaller offer counts once the work on it has ended.
    Device.objects.filter(pk=device.pk, used__lte=shares).exclude(capacity=shares).update(capacity=shares)
    Device.objects.filter(pk=device.pk, used__gt=shares).update(capacity=F("used"))


def _memory_mib() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) // 1024
    return 0


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()[:100]
    return os.uname().machine
