"""Whether work may be moved off a machine's cards, and how much memory that may take.

Off everywhere until an operator allows it on a machine, and that is refused until the machine's driver can and a proof
on one of its cards (`manage.py prove_eviction`) has shown that it does."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from accounts.services import audit
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from workers.core import scheduler_wakeup
from workers.core.models import Attempt, Device, Node
from workers.core.models.nodes import SHARES_PER_DEVICE
from workers.core.states import Desired
from workers.resources.nodes import lifecycle

MARGIN_MIB, MARGIN_PART = 2048, 10
"""Host memory that evictions leave alone: two GiB, or a tenth where that is more."""


MAX_AGE = timedelta(seconds=60)


SETTLES = timedelta(seconds=15)
"""So long after an eviction a machine's figure may not show it yet."""


CANNOT = {
    "unknown": gettext_lazy("The agent has not reported yet whether the driver supports this."),
    "no_card": gettext_lazy("The node has no NVIDIA GPU."),
    "simulated": gettext_lazy("The GPUs are simulated."),
    "no_driver": gettext_lazy("The driver does not support this: %(detail)s"),
    "container": gettext_lazy("Jobs on this node run in containers, whose processes cannot be moved."),
    "mps": gettext_lazy("The GPUs are shared by CUDA MPS, whose clients cannot be moved."),
    "little_memory": gettext_lazy("The memory of the node (%(detail)s) is too small for the content of a GPU."),
}


class NotProven(DomainError, code="eviction_not_proven"):
    """The machine cannot evict, or no proof has shown yet that it can."""


def obstacle(node: Node) -> str:
    """Why no work may be evicted on this machine, apart from an operator's decision; empty where it may."""
    can, proof = node.evict_can, node.evict_proof
    code = can.get("code", "unknown") if can else "unknown"
    if code:
        return str(CANNOT.get(code, CANNOT["no_driver"])) % {"detail": can.get("detail", "")}
    if node.mps:
        return str(CANNOT["mps"])
    if not proof:
        return _("Not verified on driver %(driver)s yet.") % {"driver": can["driver"]}
    if not proof.get("ok"):
        return str(Message.from_json(proof.get("message")))
    if (proof.get("driver"), proof.get("tier")) != (can["driver"], can["tier"]):
        facts = {"old": proof.get("driver"), "now": can["driver"]}
        return _("Verified on driver %(old)s; the driver (now %(now)s) or the isolation has changed since.") % facts
    return ""


def in_effect(node: Node) -> bool:
    """Whether work may be evicted on this machine now."""
    return node.evicts and not obstacle(node)


@transaction.atomic
def allow(node: Node, *, by: User | None = None) -> Node:
    """Let the scheduler evict work on a machine.

    Raises:
        NotProven: the sentence says what is missing.
    """
    why = obstacle(node)
    if why:
        raise NotProven(why)
    if Node.objects.filter(pk=node.pk, evicts=False).update(evicts=True):
        lifecycle.record(node, "evictions_allowed", wording.message("node.evictions_allowed"), by=by)
        audit.record(by, "node_evicts", node)
        scheduler_wakeup.notify()
    node.refresh_from_db()
    return node


@transaction.atomic
def forbid(node: Node, *, by: User | None = None) -> Node:
    """Evict no further work on a machine; evicted work comes back as before."""
    if Node.objects.filter(pk=node.pk, evicts=True).update(evicts=False):
        lifecycle.record(node, "evictions_forbidden", wording.message("node.evictions_forbidden"), by=by)
        audit.record(by, "node_evicts_not", node)
    node.refresh_from_db()
    return node


def keep_proof(node: Node, proof: dict[str, Any]) -> None:
    """Note how the proof on one of the machine's cards went; one that failed ends evictions there.

    Args:
        proof: {"driver", "tier", "ok", "message", "at", "seconds"}; the message as JSON.
    """
    Node.objects.filter(pk=node.pk).update(evict_proof=proof)
    lifecycle.record(node, "eviction_proof", Message.from_json(proof["message"]))


def spare_mib(moment: datetime) -> dict[int, int]:
    """Host memory in MiB that card memory of evicted work may take, by node; machines without any are left out.

    Two sums must both have room, less a margin: what the machine measures free, and what is left of its memory when
    every job took all it may. Where the figures are old there is none.
    """
    nodes = [node for node in Node.objects.filter(evicts=True, state=Node.State.LIVE) if in_effect(node)]
    if not nodes:
        return {}
    bound: dict[int, int] = defaultdict(int)
    moved: dict[int, int] = defaultdict(int)
    unseen: dict[int, int] = defaultdict(int)
    seen_at = {node.pk: parse_datetime(str(node.facts.get("at", ""))) for node in nodes}
    live = Attempt.objects.filter(ended_at=None, allocations__node__in=nodes, allocations__released_at=None)
    for attempt in live.distinct().select_related("job"):
        home, mib = card_memory(attempt)
        bound[home] += attempt.job.memory_mib
        if attempt.evicted_at is None and attempt.job.desired != Desired.EVICT:
            continue
        moved[home] += mib
        at = seen_at.get(home)
        if attempt.evicted_at is None or at is None or attempt.evicted_at > at - SETTLES:
            unseen[home] += mib
    spare_by_node = {}
    for node in nodes:
        total, used, at = node.facts.get("memory_total_mib"), node.facts.get("memory_used_mib"), seen_at[node.pk]
        if not total or used is None or at is None or moment - at > MAX_AGE:
            continue
        measured = total - used - unseen[node.pk]
        promised = total - bound[node.pk] - moved[node.pk]
        spare = min(measured, promised) - max(MARGIN_MIB, total // MARGIN_PART)
        if spare > 0:
            spare_by_node[node.pk] = int(spare)
    return spare_by_node


def card_memory(attempt: Attempt) -> tuple[int, int]:
    """(node, MiB) that an attempt on one machine may hold of its cards."""
    rows = attempt.allocations.filter(released_at=None).exclude(device__kind=Device.Kind.CPU)
    held = list(rows.values_list("node_id", "device__memory_mib", "share"))
    if not held:
        return 0, 0
    return held[0][0], sum(-(-memory * share // SHARES_PER_DEVICE) for _node, memory, share in held)
