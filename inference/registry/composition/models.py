"""What composed versions are made of; inference/models.py makes the table known to Django."""

from __future__ import annotations

from django.db import models

from inference.registry.querysets import VersionPartQuerySet


class VersionPart(models.Model):
    """One of the versions that a composed version was made of. Its files were copied: nothing here holds it."""

    version = models.ForeignKey("inference.ModelVersion", models.CASCADE, related_name="parts")
    place = models.PositiveSmallIntegerField()  # from 1, as in the names of its files
    source = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="composed")
    source_label = models.CharField(max_length=220)  # OWNER/NAME v2, kept after it is deleted
    weight = models.FloatField(default=1.0)  # of an ensemble

    objects = VersionPartQuerySet.as_manager()

    class Meta:
        ordering = ["place"]
        constraints = [models.UniqueConstraint(fields=["version", "place"], name="version_part_once")]

    def __str__(self) -> str:
        return f"{self.place}: {self.source_label}"
