"""The table of conversions of a set into a file and a dataset version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from annotation.models.projects import AnnotationSet
from annotation.querysets import InSetQuerySet
from datasets.formats.exports import FORMATS

COCO = "coco"


def targets() -> list[tuple[str, Any]]:
    """Names and labels of the formats a set is converted to."""
    return [(COCO, _("COCO (boxes and polygons)")), *((form.name, form.label) for form in FORMATS)]


class Export(models.Model):
    """One conversion of a set to a file. At most one per set is under way: a partial unique index."""

    class State(models.TextChoices):
        QUEUED = "queued", _("Waiting")
        CONVERTING = "converting", _("Converting")
        SUCCESS = "success", _("Converted")
        FAILED = "failed", _("Failed")

    set = models.ForeignKey(AnnotationSet, models.CASCADE, related_name="exports")
    target = models.CharField(_("format"), max_length=8, choices=targets, default=COCO)
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED, editable=False)
    make_version = models.BooleanField(default=True)  # also freeze as a dataset version a training can pin
    version = models.ForeignKey("datasets.DatasetVersion", models.SET_NULL, null=True, blank=True, related_name="+")
    dataset = models.ForeignKey(  # new, for the version; None: it becomes a version of the source's dataset
        "datasets.Dataset", models.SET_NULL, null=True, blank=True, related_name="+"
    )
    tries = models.PositiveSmallIntegerField(default=0)
    path = models.CharField(max_length=500, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    size_bytes = models.PositiveBigIntegerField(default=0)
    images = models.PositiveIntegerField(default=0)
    annotations = models.PositiveIntegerField(default=0)
    left_out = models.PositiveIntegerField(default=0)
    detail = models.CharField(max_length=500, blank=True)  # why it failed, or what was left out
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)
    holder = models.CharField(max_length=100, blank=True, editable=False)  # the worker that converts, see lib.claims
    renewed_at = models.DateTimeField(null=True, blank=True, editable=False)  # its last sign of life
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = InSetQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("conversion")
        verbose_name_plural = _("conversions")
        constraints = [
            models.UniqueConstraint(
                fields=["set"], condition=Q(state__in=["queued", "converting"]), name="one_conversion_at_a_time"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.set} → {self.target} #{self.pk}"

    @property
    def is_live(self) -> bool:
        return self.state in {self.State.QUEUED, self.State.CONVERTING}

    @property
    def file(self) -> Path:
        return Path(self.path)
