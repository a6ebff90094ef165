"""Table of code snapshots, and the columns of all jobs that run a user's program."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.access.querysets import OwnedQuerySet
from datasets.models import DatasetVersion


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


class ProgramRow(models.Model):
    """What the rows of all jobs that run a user's program have; how one runs is its `job`, its data are `inputs`."""

    variables = models.JSONField(_("environment variables"), default=dict)  # {"NAME": "value"}
    secrets = models.TextField(blank=True, editable=False)  # more of them, see aiplatform.lib.sealed
    secret_names = models.JSONField(default=list, editable=False)

    class Meta:
        abstract = True
        ordering = ["-pk"]

    def __str__(self) -> str:
        name: str = self.job.name  # type: ignore[attr-defined]  # each kind has the relation
        return name


class DatasetInput(models.Model):
    """A dataset version that a program reads, under inputs/ by its name."""

    name = models.CharField(max_length=60)  # "cells v2", also after the version is gone
    version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, related_name="+")

    class Meta:
        abstract = True
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name
