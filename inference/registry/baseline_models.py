"""Table of baselines: statistics of the training images of a version."""

from __future__ import annotations

from django.db import models
from django.utils.timezone import now


class ModelBaseline(models.Model):
    """What pictures and answers are like on the images that a version learned from."""

    version = models.OneToOneField("inference.ModelVersion", models.CASCADE, related_name="baseline")
    data_name = models.CharField(max_length=80)  # "cells v2", kept after the version is deleted
    images = models.PositiveIntegerField()
    tally = models.JSONField()
    made_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.data_name
