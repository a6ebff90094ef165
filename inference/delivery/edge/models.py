"""Tables of devices outside of the cluster."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.titles import TITLE
from inference.delivery.edge.querysets import EdgeDeviceQuerySet, EdgeGroupQuerySet


class EdgePackage(models.Model):
    """A version as a package whose bytes never change: data root/edge/packages/SHA256.zip."""

    version = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="edge_packages")
    model_label = models.CharField(max_length=130)  # "cells v2", also after the version is gone
    sha256 = models.CharField(max_length=64, unique=True)
    size_bytes = models.PositiveBigIntegerField()
    self_test = models.CharField(max_length=64, blank=True)  # sha256 of the answers that it carries; "": none
    created_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.model_label


class EdgeGroup(models.Model):
    """Devices that run the same model, and how far its newest release has come."""

    name = models.CharField(_("name"), max_length=100, validators=[TITLE])
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="edge_groups")
    wanted = models.ForeignKey(EdgePackage, models.PROTECT, null=True, related_name="+")
    before = models.ForeignKey(EdgePackage, models.PROTECT, null=True, related_name="+")  # of those not yet reached
    number = models.PositiveIntegerField(default=0)  # of the release; never goes back
    share = models.PositiveSmallIntegerField(default=100)  # percent of the devices that it reaches
    halted = models.BooleanField(default=False)  # too many devices failed with it
    days_offline = models.PositiveSmallIntegerField(default=7)  # so long a release is believed
    soak_minutes = models.PositiveIntegerField(default=0)  # after which it goes on by itself; 0: a person says so
    stage_at = models.DateTimeField(null=True)  # when its share was last changed
    released_at = models.DateTimeField(null=True)
    keep_percent = models.PositiveSmallIntegerField(default=0)  # of the pictures that devices answer, by chance
    keep_below = models.PositiveSmallIntegerField(default=0)  # pictures with an answer of a lower score, in percent
    keep_days = models.PositiveSmallIntegerField(default=30)  # how long they wait for annotation
    created_at = models.DateTimeField(default=now)

    objects = EdgeGroupQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="edge_group_name_once_per_owner")]

    def __str__(self) -> str:
        return self.name

    @property
    def keeps(self) -> bool:
        """Whether its devices keep pictures for annotation."""
        return bool(self.keep_percent or self.keep_below)

    @property
    def model_name(self) -> str:
        """What its devices answer with; "" before the first release."""
        return self.wanted.model_label if self.wanted else ""

    @property
    def model_version(self) -> Any:
        """The released version; None before the first release, or where the version was deleted."""
        return self.wanted.version if self.wanted else None


class EdgeDevice(models.Model):
    """A device: the package it should run, the package it runs and its last report."""

    group = models.ForeignKey(EdgeGroup, models.CASCADE, related_name="devices")
    name = models.CharField(_("name"), max_length=100, validators=[TITLE])
    uid = models.CharField(max_length=32, unique=True)  # random; in releases
    place = models.PositiveIntegerField()  # random: in this order releases reach the devices of a group
    code_digest = models.CharField(max_length=64, blank=True)  # of the one-time code; "" once it was used
    code_expires_at = models.DateTimeField(null=True)
    token_digest = models.CharField(max_length=64, blank=True)  # "" before it is enrolled, and once it is revoked
    enrolled_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    package = models.CharField(max_length=64, blank=True)  # sha256 of what it runs
    number = models.PositiveIntegerField(default=0)  # of the newest release that it took in
    outcome = models.CharField(max_length=20, blank=True)  # of its last round, a code of edge/words.py
    detail = models.CharField(max_length=300, blank=True)  # output of a tool on the device
    differs = models.JSONField(default=dict)  # sample, samples, kind, largest, tolerance; see labels.py
    runs_well_since = models.DateTimeField(null=True)  # with this package, without a failure
    failed = models.CharField(max_length=64, blank=True)  # sha256 of the package that it last failed with
    counters = models.JSONField(default=dict)
    hardware = models.JSONField(default=dict)
    samples = models.CharField(max_length=10, blank=True)  # a code of words.SAMPLES: whether it keeps pictures
    created_at = models.DateTimeField(default=now)

    objects = EdgeDeviceQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["group", "name"], name="edge_device_name_once_per_group")]

    def __str__(self) -> str:
        return self.name


class EdgeReport(models.Model):
    """A report of a device at a change; rows are only added."""

    device = models.ForeignKey(EdgeDevice, models.CASCADE, related_name="reports")
    at = models.DateTimeField(default=now)
    outcome = models.CharField(max_length=20)
    detail = models.CharField(max_length=300, blank=True)
    differs = models.JSONField(default=dict)  # as of the device
    package = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.outcome


class DeviceSpeed(models.Model):
    """How fast a version answers on a device, as the device says: for people to look at, nothing is decided by it."""

    device = models.ForeignKey(EdgeDevice, models.CASCADE, related_name="speeds")
    version = models.ForeignKey("inference.ModelVersion", models.CASCADE, related_name="device_speeds")
    hardware = models.CharField(max_length=100)  # the card that ran it, else the processor
    machine = models.CharField(max_length=100)  # x86_64, aarch64 …
    threads = models.PositiveSmallIntegerField()
    provider = models.CharField(max_length=100)
    runtime = models.CharField(max_length=100)
    p50_ms = models.FloatField()  # of one picture
    p95_ms = models.FloatField()
    runs = models.PositiveSmallIntegerField()
    memory_mib = models.FloatField(null=True)  # that the model took; None: not known
    at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["device", "version"], name="device_speed_once_per_version")]

    def __str__(self) -> str:
        return f"{self.hardware}: {self.p50_ms:g} ms"


class EdgeLog(models.Model):
    """The last lines that a device sent."""

    device = models.OneToOneField(EdgeDevice, models.CASCADE, related_name="log")
    lines = models.JSONField(default=list)  # [ms since 1970 by its clock, text], the newest last
    upto = models.BigIntegerField(default=0)  # number of the newest line that came
    day = models.DateField(null=True)
    bytes_today = models.PositiveIntegerField(default=0)
    left_out = models.PositiveIntegerField(default=0)  # lines of that day beyond a day's share

    def __str__(self) -> str:
        return f"{self.device}: {len(self.lines)}"
