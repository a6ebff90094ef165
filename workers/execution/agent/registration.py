"""Registration: writes what this machine is and offers to its node row and devices."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Iterable
from pathlib import Path

from django.db import transaction
from django.db.models import F

from aiplatform import __version__, env
from aiplatform.lib import wording
from aiplatform.lib.wording import Message
from workers.core import scratch
from workers.core.clock import now
from workers.core.models import Device, Node
from workers.core.models.nodes import SHARES_PER_DEVICE
from workers.execution import protection, root_users, tickets
from workers.execution.agent import eviction_probe
from workers.resources.nodes import lifecycle
from workers.resources.nodes.telemetry import rotation
from workers.resources.nodes.telemetry.probe import Card
from workers.supervisor import engines, records, sandbox

log = logging.getLogger(__name__)


def register(name: str, cards: Iterable[Card]) -> Node:
    """Write node and devices as they are now; devices that are missing keep their row, marked as such.

    One transaction: nobody sees a machine without its cards.

    Raises:
        NameTaken: the name belongs to another machine.
        Removed: an operator took this machine out, and it had joined by a token.
    """
    cards, tier = list(cards), tickets.tier()[0]  # these may take a while
    can = eviction_probe.check(cards, tier, _memory_mib())
    with transaction.atomic():
        return _register(name, cards, tier, can)


def _register(name: str, cards: list[Card], tier: int, evict_can: dict[str, object]) -> Node:
    cores = len(os.sched_getaffinity(0))
    offer = tickets.containers() if tier >= sandbox.CONTAINER else engines.Offer()
    contained = {"container_engine": offer.engine, "container_image": offer.container.get("image", "")}
    node = lifecycle.claim(name, lifecycle.machine_id(), rejoin=not env.NODE_JOINED)
    Node.objects.filter(pk=node.pk).update(
        boot_id=records.boot_id(),
        heartbeat_at=now(),
        cpu_cores=cores,
        memory_mib=_memory_mib(),
        sandbox_tier=tier,
        root_inside=root_users.works(*tickets.tier()),
        evict_can=evict_can,
        facts={**node.facts, "version": __version__, "python": platform.python_version(), "kernel": platform.release()}
        | {"machine": platform.machine(), "driver": str(evict_can.get("driver") or "")}
        | contained
        | {"guards": protection.guards()}
        | {"scratch": {"path": str(scratch.root()), "spins": rotation.spins(scratch.root())}},
        state=Node.State.DRAINING if node.drain else Node.State.LIVE,
        **({"address": env.NODE_ADDRESS} if env.NODE_ADDRESS else {}),
    )
    node.refresh_from_db()
    shares = max(1, int(SHARES_PER_DEVICE * cores * env.CPU_OVERCOMMIT))
    _offer(node, Device.Kind.CPU, 0, {"model": _cpu_model(), "memory_mib": _memory_mib()}, shares)
    present = node.devices.exclude(kind=Device.Kind.CPU).exclude(health=Device.Health.GONE)
    before, is_new = present.count(), not node.devices.exclude(kind=Device.Kind.CPU).exists()
    keys = set()
    for card in cards:
        keys.add((card.kind, card.index))
        columns = {"uuid": card.uuid, "model": card.name, "memory_mib": card.memory_mib, "group": card.group}
        columns |= {"simulated": card.simulated, "parent": card.parent}
        _offer(node, Device.Kind(card.kind), card.index, columns, SHARES_PER_DEVICE)
    for device in present:
        if (device.kind, device.index) not in keys:
            log.warning("node=%s device=%s%s is gone", name, device.kind, device.index)
            gone = wording.message("card.not_built_in")
            Device.objects.filter(pk=device.pk).update(health=Device.Health.GONE, health_message=gone)
    if len(keys) != before and not is_new:
        message = wording.message("node.cards_changed", before=before, now=len(keys))
        lifecycle.record(node, "cards_changed", message)
    return node


def _offer(node: Node, kind: str, index: int, columns: dict[str, object], shares: int) -> None:
    device, _made = Device.objects.get_or_create(node=node, kind=kind, index=index, defaults={"capacity": shares})
    # what a card said of its health stands until it says otherwise, but one that is back is back
    Device.objects.filter(pk=device.pk, health=Device.Health.GONE).update(
        health=Device.Health.OK, health_message=Message()
    )
    Device.objects.filter(pk=device.pk).update(**columns)
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
