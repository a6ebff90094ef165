"""Tables of what models in use are shown."""

from __future__ import annotations

from django.db import models


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
