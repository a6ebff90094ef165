"""Tables of what models in use are shown; inference/models.py makes them known to Django."""

from __future__ import annotations

from django.db import models
from django.utils.timezone import now


class ServiceStatistics(models.Model):
    """What one server counted within an hour (inference/kit/models/statistics.py); written over until that is past."""

    service = models.ForeignKey("inference.Service", models.CASCADE, related_name="statistics")
    version = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="+")
    slot = models.CharField(max_length=80, unique=True)  # job, attempt and hour
    begins_at = models.DateTimeField(db_index=True)
    images = models.PositiveIntegerField(default=0)
    tally = models.JSONField(default=dict)

    class Meta:
        ordering = ["begins_at"]
        indexes = [models.Index(fields=["service", "begins_at"])]

    def __str__(self) -> str:
        return self.slot


class ModelBaseline(models.Model):
    """What pictures and answers are like on the images that a version learned from."""

    version = models.OneToOneField("inference.ModelVersion", models.CASCADE, related_name="baseline")
    data_name = models.CharField(max_length=80)  # "cells v2", also after the version is gone
    images = models.PositiveIntegerField()
    tally = models.JSONField()
    made_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.data_name
