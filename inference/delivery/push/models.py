"""Tables of pushed models."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.message_field import MessageField
from aiplatform.lib.titles import TITLE
from inference.delivery.push.querysets import PushQuerySet, PushTargetQuerySet


class UsableBy(models.TextChoices):
    PRIVATE = "private", _("Only me")
    GROUP = "group", _("My groups")


class PushTarget(models.Model):
    """A destination that a user pushes models to. Its secret is stored encrypted and never shown again."""

    name = models.CharField(_("name"), max_length=100, validators=[TITLE])
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="push_targets")
    visibility = models.CharField(_("visible to"), max_length=8, choices=UsableBy, default=UsableBy.PRIVATE)
    kind = models.CharField(_("kind"), max_length=12)  # a code of push/ways.py
    address = models.CharField(_("address"), max_length=500)  # without a name, a password or a query
    options = models.JSONField(default=dict)  # in the open; what each kind asks for, see its file
    secret = models.TextField(blank=True, editable=False)  # {"secret"}, see aiplatform.lib.sealed
    ca = models.TextField(blank=True)  # PEM, believed besides the machine's own authorities
    host_key = models.TextField(blank=True)  # of a machine by SSH, pinned when it was first seen
    created_at = models.DateTimeField(default=now)
    tested_at = models.DateTimeField(null=True)
    message = MessageField()  # why the last test failed; none where it went well

    objects = PushTargetQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="push_target_name_once_per_owner")]

    def __str__(self) -> str:
        return self.name


class Push(models.Model):
    """One push of a version to a target. `pushes.py` is the only writer."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")  # also between two tries
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        STOPPED = "stopped", _("Stopped")

    class Content(models.TextChoices):
        PACKAGE = "package", _("Standalone package")
        FILES = "files", _("Only files of the version")

    target = models.ForeignKey(PushTarget, models.SET_NULL, null=True, related_name="pushes")
    target_name = models.CharField(max_length=100)  # also after it is gone
    version = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="pushes")
    model_name = models.CharField(max_length=130)  # "cells v2", also after the version is gone
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="pushes")  # who pushed
    content = models.CharField(max_length=8, choices=Content, default=Content.PACKAGE)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING, editable=False)
    message = MessageField()  # why it failed, or waits before it is tried again
    sent_bytes = models.PositiveBigIntegerField(default=0)
    size_bytes = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)  # of the bytes that are pushed, once they were counted
    landed = models.CharField(max_length=700, blank=True)  # location of the file, as the destination names it
    holder = models.CharField(max_length=150, blank=True)  # who sends it, see aiplatform.lib.claims
    renewed_at = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(default=now)
    created_at = models.DateTimeField(default=now)
    ended_at = models.DateTimeField(null=True)

    objects = PushQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["not_before"], condition=models.Q(ended_at=None), name="push_unfinished"),
        ]

    def __str__(self) -> str:
        return f"{self.model_name} → {self.target_name}"

    @property
    def is_over(self) -> bool:
        """Whether it ended, well or not."""
        return self.ended_at is not None

    @property
    def share(self) -> float:
        """How much was sent, 0..1."""
        return min(1.0, self.sent_bytes / self.size_bytes) if self.size_bytes else 0.0
