"""Machines and what they offer."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.message_field import MessageField
from workers.core.querysets import JoinTokenQuerySet, MachineQuerySet

SHARES_PER_DEVICE = 8  # a whole GPU, or one CPU core, is eight shares


def tier_label(tier: int | None) -> str:
    """Short label of a sandbox tier (workers.supervisor.sandbox); "" where it is unknown."""
    labels = (_("no sandbox"), "Landlock", "bubblewrap", _("separate user and limits"), _("container"))
    return str(labels[tier]) if tier is not None and tier < len(labels) else ""


class Node(models.Model):
    """A machine. `state` is judged by the scheduler from `heartbeat_at`, on the server's clock."""

    class State(models.TextChoices):
        LIVE = "live", _("Live")
        SUSPECT = "suspect", _("Suspect")  # 15 s silent: no new work
        UNREACHABLE = "unreachable", _("Unreachable")  # 60 s: shown, keeps its cards
        LOST = "lost", _("Lost")  # 10 min: its attempts restart elsewhere
        DRAINING = "draining", _("Draining")  # heard of, and `drain` is set
        REMOVED = "removed", _("Removed")  # kept for its history; its agent ends

    name = models.CharField(max_length=100, unique=True)
    state = models.CharField(max_length=12, choices=State, default=State.LIVE)
    drain = models.BooleanField(default=False)  # set by an operator: what runs goes on, nothing new starts
    machine = models.CharField(max_length=64, blank=True)  # the machine's own random id: a name belongs to one
    boot_id = models.CharField(max_length=40, blank=True)
    heartbeat_at = models.DateTimeField(default=now)
    address = models.CharField(max_length=100, default="127.0.0.1")  # where job ports listen, seen from the web
    cpu_cores = models.PositiveIntegerField(default=1)
    memory_mib = models.PositiveIntegerField(default=0)
    sandbox_tier = models.PositiveSmallIntegerField(default=0)
    root_inside = models.BooleanField(default=False)  # jobs may be root inside, see workers.supervisor.root_inside
    evicts = models.BooleanField(default=False)  # set by an operator, see machines/eviction_policy.py
    evict_can = models.JSONField(default=dict)  # what its agent found out: {"driver", "tier", "library", "why"}
    evict_proof = models.JSONField(default=dict)  # of a real card: {"driver", "tier", "ok", "message", "at", "seconds"}
    mps = models.BooleanField(
        default=False
    )  # set by an operator: shares of its cards by CUDA MPS, see machines/mps_policy.py
    mps_gain = models.JSONField(default=dict)  # as measured: {"clients", "alone", "together", "card", "driver", "at"}
    facts = models.JSONField(default=dict)  # last telemetry sample, versions, disks
    joined_at = models.DateTimeField(default=now)

    objects = MachineQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def sandbox_words(self) -> str:
        """What keeps its jobs apart, in words."""
        return tier_label(self.sandbox_tier)


class Device(models.Model):
    """A GPU, or a node's CPU cores. `used` shares are kept by compare-and-set and checked by the database."""

    class Kind(models.TextChoices):
        GPU = "gpu", _("GPU")
        NPU = "npu", _("NPU")
        CPU = "cpu", _("CPU")

    class Health(models.TextChoices):
        OK = "ok", _("OK")
        GONE = "gone", _("Gone")
        SICK = "sick", _("Faulty")
        EXTERNAL = "external", _("External process")  # somebody else computes on it: not offered, never killed

    node = models.ForeignKey(Node, models.CASCADE, related_name="devices")
    kind = models.CharField(max_length=8, choices=Kind)
    index = models.PositiveSmallIntegerField(default=0)  # the id of CUDA_VISIBLE_DEVICES
    uuid = models.CharField(max_length=80, blank=True)
    model = models.CharField(max_length=100, blank=True)
    memory_mib = models.PositiveIntegerField(default=0)
    capacity = models.PositiveIntegerField(default=SHARES_PER_DEVICE)  # shares
    used = models.PositiveIntegerField(default=0)  # shares
    group = models.PositiveSmallIntegerField(default=0)  # devices with fast links among them
    health = models.CharField(max_length=8, choices=Health, default=Health.OK)
    health_message = MessageField()  # why it is not OK
    parent = models.PositiveSmallIntegerField(null=True, blank=True)  # index of the card that a MIG slice is cut from
    simulated = models.BooleanField(default=False)
    sample = models.JSONField(default=dict)  # {"util": %, "memory_used_mib", "temperature_c", "power_w", "at"}

    objects = MachineQuerySet.as_manager()

    class Meta:
        ordering = ["node", "kind", "index"]
        constraints = [
            models.UniqueConstraint(fields=["node", "kind", "index"], name="device_once_per_node"),
            models.CheckConstraint(condition=Q(used__lte=F("capacity")), name="device_never_over_capacity"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}{self.index}@{self.node}"


class NodeEvent(models.Model):
    """Event log of a machine and its devices: one row per event, never edited."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="events")
    device = models.ForeignKey(Device, models.CASCADE, null=True, blank=True, related_name="events")
    at = models.DateTimeField(default=now)
    event = models.CharField(max_length=30, db_index=True)  # joined, drained, lost, device_external, …
    message = MessageField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.node}: {self.event}"


class JoinToken(models.Model):
    """Lets one machine join, once, until it expires. Only its digest is kept."""

    digest = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=16)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)
    made_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    node = models.ForeignKey(Node, models.SET_NULL, null=True, blank=True)  # who used it

    objects = JoinTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.prefix}…"


class Lease(models.Model):
    """Who acts as the one scheduler. A new holder raises `epoch`; an old one's writes are refused."""

    name = models.CharField(max_length=30, unique=True)
    holder = models.CharField(max_length=100)
    epoch = models.PositiveBigIntegerField(default=0)
    renewed_at = models.DateTimeField(default=now)
    watched_since = models.DateTimeField(default=now)  # somebody has acted without a gap since then

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"
