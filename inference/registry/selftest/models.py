"""Tables of samples for self-tests."""

from __future__ import annotations

from django.db import models
from django.utils.timezone import now


class SelfTest(models.Model):
    """A few pictures with the answers of a version; they lie in the file of `self_tests.file_of`."""

    version = models.OneToOneField("inference.ModelVersion", models.CASCADE, related_name="self_test")
    job = models.ForeignKey("workers.Job", models.SET_NULL, null=True, related_name="+")  # that made the answers
    data = models.ForeignKey("datasets.DatasetVersion", models.SET_NULL, null=True, related_name="+")
    data_label = models.CharField(max_length=80)  # whose pictures they are, kept after the version is deleted
    samples = models.PositiveSmallIntegerField()
    pictures = models.PositiveSmallIntegerField()  # of them, those of the dataset; the others are drawn
    made_with = models.JSONField(default=dict)  # machine, onnxruntime, provider
    made_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return f"{self.samples}"
