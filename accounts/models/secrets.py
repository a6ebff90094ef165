"""Secrets that people keep under a name, for their jobs and pipelines."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.access.querysets import OwnRowsQuerySet


class NamedSecret(models.Model):
    """A write-only value of a user; only jobs and steps that run as this user read it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="named_secrets")
    name = models.CharField(_("name"), max_length=64)
    note = models.CharField(_("note"), max_length=200, blank=True)
    sealed = models.TextField(editable=False)  # see aiplatform.lib.sealed
    created_at = models.DateTimeField(default=now)
    changed_at = models.DateTimeField(default=now)  # when its value was set
    used_at = models.DateTimeField(null=True, blank=True)

    objects = OwnRowsQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="named_secret_once_per_person")]

    def __str__(self) -> str:
        return self.name
