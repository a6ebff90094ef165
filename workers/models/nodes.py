"""Machines and what they offer."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from workers.querysets import MachineQuerySet

SHARES_PER_DEVICE = 8  # a whole GPU, or one CPU core, is eight shares


class Node(models.Model):
    """A machine. `state` is judged by the scheduler from `heartbeat_at`, on the server's clock."""

    class State(models.TextChoices):
        LIVE = "live", _("Live")
        SUSPECT = "suspect", _("Suspect")  # 15 s silent: no new work
        UNREACHABLE = "unreachable", _("Unreachable")  # 60 s: shown, keeps its cards
        LOST = "lost", _("Lost")  # 10 min: its attempts restart elsewhere
        DRAINING = "draining", _("Draining")

    name = models.CharField(max_length=100, unique=True)
    state = models.CharField(max_length=12, choices=State, default=State.LIVE)
    boot_id = models.CharField(max_length=40, blank=True)
    heartbeat_at = models.DateTimeField(default=now)
    address = models.CharField(max_length=100, default="127.0.0.1")  # where job ports listen, seen from the web
    cpu_cores = models.PositiveIntegerField(default=1)
    memory_mib = models.PositiveIntegerField(default=0)
    sandbox_tier = models.PositiveSmallIntegerField(default=0)
    facts = models.JSONField(default=dict)  # last telemetry sample, versions, disks
    joined_at = models.DateTimeField(default=now)

    objects = MachineQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Device(models.Model):
    """A GPU, or a node's CPU cores. `used` shares are kept by compare-and-set and checked by the database."""

    class Kind(models.TextChoices):
        GPU = "gpu", _("GPU")
        CPU = "cpu", _("CPU")

    class Health(models.TextChoices):
        OK = "ok", _("OK")
        GONE = "gone", _("Gone")
        SICK = "sick", _("Sick")

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


class Lease(models.Model):
    """Who acts as the one scheduler. A new holder raises `epoch`; an old one's writes are refused."""

    name = models.CharField(max_length=30, unique=True)
    holder = models.CharField(max_length=100)
    epoch = models.PositiveBigIntegerField(default=0)
    renewed_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"
