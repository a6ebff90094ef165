"""Whether jobs on shares of a machine's cards compute at the same time, by CUDA MPS, and what its page says of that.

Off everywhere until an operator allows it on a machine. Jobs that cannot then run as before, with the reason shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from workers.core import kinds
from workers.core.models import Allocation, Device, Job, Node
from workers.resources.nodes import lifecycle


@dataclass(frozen=True)
class Client:
    """A job on a share of a card. `job` is None where the reader may not see it; `why` says why it has no MPS."""

    job: Job | None
    owner: str
    card: int
    percent: float
    memory_mib: int
    why: str

    @property
    def url(self) -> str:
        return kinds.url_of(self.job) if self.job else ""


@dataclass(frozen=True)
class MpsView:
    """MPS on one node: running daemons, programs they serve (None: unknown), and obstacles."""

    allowed: bool
    daemons: int
    programs: int | None
    obstacles: list[str]
    clients: list[Client]
    gain: str


class MpsImpossible(DomainError, code="mps_impossible"):
    """The node reports that it cannot share its GPUs by MPS, or has none."""


@transaction.atomic
def allow(node: Node, *, by: User | None = None) -> Node:
    """Let jobs that start on shares of this node's GPUs use them through MPS.

    Raises:
        MpsImpossible: the node has no GPU, or its agent reports what stands in the way.
    """
    if not node.devices.filter(kind=Device.Kind.GPU).exists():
        raise MpsImpossible(_("%(node)s has no GPU that MPS could share.") % {"node": node.name})
    if reasons := obstacles(node):
        raise MpsImpossible(" ".join(map(str, reasons)))
    if Node.objects.filter(pk=node.pk, mps=False).update(mps=True):
        lifecycle.record(node, "mps_allowed", wording.message("node.mps_allowed"), by=by)
        audit.record(by, "node_mps", node)
    node.refresh_from_db()
    return node


@transaction.atomic
def forbid(node: Node, *, by: User | None = None) -> Node:
    """Let no further job use MPS; those that do keep it until they end, and their daemons with them."""
    if Node.objects.filter(pk=node.pk, mps=True).update(mps=False):
        lifecycle.record(node, "mps_forbidden", wording.message("node.mps_forbidden"), by=by)
        audit.record(by, "node_mps_not", node)
    node.refresh_from_db()
    return node


def keep_gain(node: Node, gain: dict[str, Any]) -> None:
    """Note what a measurement on one of the machine's cards gave.

    Args:
        gain: {"card", "clients", "alone", "together", "driver", "at"}; steps per second of all clients together,
            taking turns and by MPS.
    """
    Node.objects.filter(pk=node.pk).update(mps_gain=gain)


def obstacles(node: Node) -> list[Message]:
    """Why shares of its cards would not use MPS, as its agent saw it last."""
    return [Message.from_json(why) for why in (node.facts.get("mps") or {}).get("obstacles", [])]


def view(node: Node, user: User) -> MpsView:
    """Content of the node's page."""
    report = node.facts.get("mps") or {}
    daemons = report.get("daemons", [])
    counts = [item["programs"] for item in daemons if item.get("programs") is not None]
    failed = [str(Message.from_json(item["why"])) for item in daemons if item.get("why")]
    return MpsView(
        allowed=node.mps,
        daemons=len(daemons) - len(failed),
        programs=sum(counts) if len(counts) == len(daemons) else None,
        obstacles=[str(why) for why in obstacles(node)] + failed,
        clients=_clients(node, user),
        gain=gained(node),
    )


def gained(node: Node) -> str:
    """What was gained when it was last measured, in words; "" before."""
    gain = node.mps_gain
    if not gain or not gain.get("alone"):
        return ""
    return _(
        "Measured on GPU %(card)s with %(clients)s programs: %(ratio).2f times as many steps as with time slicing."
    ) % {**gain, "ratio": gain["together"] / gain["alone"]}


def _clients(node: Node, user: User) -> list[Client]:
    live = Allocation.objects.filter(node=node, released_at=None)
    rows = live.exclude(mps=False, mps_refusal={}).select_related("attempt__job__owner", "device")
    clients = []
    for row in rows.order_by("device__index", "pk"):
        job, part = row.attempt.job, row.share / row.device.capacity
        is_visible = job.owner_id == user.pk or user.sees_everything
        memory_mib = int(row.device.memory_mib * part)
        owner = job.owner.get_full_name()
        clients.append(
            Client(job if is_visible else None, owner, row.device.index, 100 * part, memory_mib, str(row.mps_refusal))
        )
    return clients
