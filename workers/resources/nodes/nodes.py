"""Machines as people see them: how loaded they are, and who holds which device."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Prefetch
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.columns import USER_NAMES, narrow
from aiplatform.lib.wording import Message
from workers.core import kinds
from workers.core.models import Allocation, Device, Node
from workers.resources.clusters import cpu_slots
from workers.resources.clusters.cpu_slots import CpuSlots
from workers.resources.nodes import card_catalogue, eviction_policy, guards, scratch_disk

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MAX_AGE = timedelta(seconds=60)
"""An older sample says nothing about now."""
LOADS = {
    "light": (_("Light load"), "arrow-down"),
    "medium": (_("Medium load"), "minus"),
    "heavy": (_("Heavy load"), "arrow-up"),
    "none": (_("No data"), "help"),
}


@dataclass(frozen=True)
class Holder:
    """A job's share of a device. `job` is None where the reader may not see it."""

    owner: str
    job: Any
    share: int
    capacity: int

    @property
    def url(self) -> str:
        return kinds.url_of(self.job) if self.job else ""


@dataclass(frozen=True)
class DeviceView:
    """A device with its newest sample and its holders."""

    device: Device
    holders: list[Holder]
    util: float | None
    memory_used_mib: float | None
    sample: dict[str, Any]

    @property
    def rates(self) -> str:
        """What the card catalogue says of it; "" of processors and simulated cards."""
        is_real = self.device.kind != Device.Kind.CPU and not self.device.simulated
        return card_catalogue.about(self.device.model, is_real=is_real)

    @property
    def used_percent(self) -> int:
        return round(100 * self.device.used / self.device.capacity) if self.device.capacity else 0


@dataclass(frozen=True)
class NodeView:
    """A node with its load: light under 10 %, medium, heavy from 90 %, or none without fresh data."""

    node: Node
    devices: list[DeviceView]
    sample: dict[str, Any]
    load: float | None
    load_key: str = field(default="none")

    @property
    def load_word(self) -> Any:
        return LOADS[self.load_key][0]

    @property
    def load_icon(self) -> str:
        return LOADS[self.load_key][1]

    @property
    def gpus(self) -> list[DeviceView]:
        return [view for view in self.devices if view.device.kind != Device.Kind.CPU]

    @property
    def cpu(self) -> DeviceView | None:
        return next((view for view in self.devices if view.device.kind == Device.Kind.CPU), None)

    @property
    def slots(self) -> CpuSlots:
        """What its processor offers to jobs without cards."""
        return cpu_slots.for_devices([self.cpu.device] if self.cpu else [])

    @property
    def advice(self) -> str:
        """What its memory should be for its cards; "" where it is enough."""
        return card_catalogue.advice_of(self.node)

    @property
    def scratch(self) -> str:
        """Where its jobs store decoded images and temporary files, and the type of the disk; "" if not reported yet."""
        return scratch_disk.describe(self.node)

    @property
    def unguarded(self) -> list[StrOrPromise]:
        """What does not protect it from its jobs, a sentence each."""
        return guards.missing(self.node)

    @property
    def evicts_not(self) -> str:
        """Why no work may be evicted here, whatever an operator decides; empty where it may."""
        return eviction_policy.obstacle(self.node)

    @property
    def proof(self) -> str:
        """How the proof on one of its cards went, in the reader's language; empty before one."""
        return str(Message.from_json(self.node.evict_proof.get("message")))

    @property
    def could_prove(self) -> bool:
        """Whether only the proof on one of its cards is missing."""
        return bool(self.evicts_not) and self.node.evict_can.get("code") == ""

    @property
    def simulated(self) -> bool:
        return any(view.device.simulated for view in self.devices)

    @property
    def free_gpus(self) -> int:
        return sum(view.device.used == 0 and view.device.health == Device.Health.OK for view in self.gpus)


def view_all(user: User) -> list[NodeView]:
    """Every node the reader may see, by name, in three queries."""
    return [_view(node, user) for node in _rows(Node.objects.visible_to(user).exclude(state="removed"))]


def view(node_id: int, user: User) -> NodeView | None:
    """One node, or None where there is none for this reader."""
    node = _rows(Node.objects.visible_to(user).filter(pk=node_id)).first()
    return _view(node, user) if node else None


def _rows(nodes: Any) -> Any:
    held = Allocation.objects.filter(released_at=None).select_related("attempt__job__owner", "attempt__job__cluster")
    shown_of_job = ("name", "kind", "state")
    held = narrow(
        held,
        attempt=(),
        attempt__job=shown_of_job,
        attempt__job__owner=USER_NAMES,
        attempt__job__cluster=("name",),
    )
    devices = Device.objects.order_by("kind", "index").prefetch_related(Prefetch("allocations", held, "live"))
    return nodes.order_by("name").prefetch_related(Prefetch("devices", devices))


def _view(node: Node, user: User) -> NodeView:
    fresh = now() - node.heartbeat_at < MAX_AGE and node.state != Node.State.LOST
    sample = dict(node.facts) if fresh else {}
    devices = [_device(device, user, fresh) for device in node.devices.all()]
    utils = [view.util for view in devices if view.device.kind == Device.Kind.GPU and view.util is not None]
    figures = [sum(utils) / len(utils)] if utils else []
    if sample.get("cpu_percent") is not None:
        figures.append(float(sample["cpu_percent"]))
    load = max(figures, default=None)
    return NodeView(node, devices, sample, load, load_key(load))


def load_key(load: float | None) -> str:
    """light under 10 %, medium, heavy from 90 %; none where it is unknown."""
    if load is None:
        return "none"
    return "light" if load < 10 else "medium" if load < 90 else "heavy"


def _device(device: Any, user: User, fresh: bool) -> DeviceView:
    holders = []
    for held in device.live:
        job = held.attempt.job
        is_visible = job.owner_id == user.pk or user.sees_everything
        holders.append(Holder(job.owner.get_full_name(), job if is_visible else None, held.share, device.capacity))
    sample = device.sample if fresh else {}
    return DeviceView(device, holders, sample.get("util"), sample.get("memory_used_mib"), sample)
