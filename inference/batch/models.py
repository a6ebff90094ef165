"""Tables of predictions."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils.timezone import now

from inference.batch.querysets import PredictedDataQuerySet, PredictionQuerySet


class Prediction(models.Model):
    """A version that answers the pictures of a dataset version or of a folder. How it runs is `job`."""

    job = models.OneToOneField("workers.Job", models.CASCADE, related_name="prediction")
    version = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="predictions")
    model_label = models.CharField(max_length=120)  # "cells v2", kept after the version is deleted
    task = models.CharField(max_length=15)
    classes = models.JSONField(default=list)  # of the model, as its model.json has them
    data = models.ForeignKey("datasets.DatasetVersion", models.SET_NULL, null=True, related_name="predictions")
    folder = models.CharField(max_length=500, blank=True)  # on the server, links resolved; "": pictures of `data`
    source_label = models.CharField(max_length=300)  # the version's name, kept after it is deleted, or the folder
    split = models.CharField(max_length=10, blank=True)  # of `data`; "": all
    is_listed = models.BooleanField(default=False)  # whether its pictures were listed when it was queued
    total = models.PositiveIntegerField(null=True)  # pictures; None: the program counts them
    params = models.JSONField(default=dict)  # score_threshold, max_detections: None as the model says; batch
    summary = models.JSONField(default=dict)  # done, broken, predictions, classes, complete, once it has ended
    published_attempt = models.PositiveIntegerField(default=0)  # whose outputs hold the results; 0: none yet

    objects = PredictionQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.job.name

    @property
    def listing(self) -> Path:
        """The file that lists its images, if they were listed; stored next to the attempts of the job."""
        return Path(settings.DATA_ROOT) / "jobs" / str(self.job_id) / "samples.jsonl"


class PredictedData(models.Model):
    """A dataset version that is made of answers, by an import."""

    prediction = models.ForeignKey(Prediction, models.CASCADE, related_name="made")
    dataset = models.ForeignKey("datasets.Dataset", models.SET_NULL, null=True, related_name="+")
    intake = models.ForeignKey("datasets.Import", models.SET_NULL, null=True, related_name="+")
    min_score = models.FloatField(default=0.0)  # answers below it were left out
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(default=now)

    objects = PredictedDataQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.prediction} → {self.dataset}"
