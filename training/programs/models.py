"""Table of code snapshots."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.access.querysets import OwnedQuerySet


class CodeSnapshot(models.Model):
    """Custom code of a user as it was submitted; never changed afterwards."""

    class Source(models.TextChoices):
        UPLOAD = "upload", _("Uploaded archive")
        HOME = "home", _("Folder in your home")

    id = models.CharField(primary_key=True, max_length=32)  # random hex, also its folder's name
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    source = models.CharField(max_length=6, choices=Source)
    origin = models.CharField(max_length=255)  # name of the archive, or the folder relative to home
    files = models.PositiveIntegerField(default=0)
    size_bytes = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(default=now)

    objects = OwnedQuerySet.as_manager()

    def __str__(self) -> str:
        return self.origin

    @property
    def path(self) -> Path:
        return Path(settings.DATA_ROOT) / "code" / self.id
