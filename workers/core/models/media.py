"""What programs show besides curves: images, histograms, texts, …, and the files they report it in."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .jobs import Attempt


class ReportFile(models.Model):
    """A file in which a program reports, and how far it was read. `version` goes up with each change."""

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="report_files")
    path = models.CharField(max_length=400)  # relative to the run directory
    version = models.PositiveIntegerField(default=1)
    position = models.PositiveBigIntegerField(default=0)
    memory = models.JSONField(default=dict)  # what its reader has to know
    missed = models.JSONField(default=dict)  # {code: how often}: what was not kept, and why
    over = models.BooleanField(default=False)  # nothing in it is of use

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "path"], name="report_file_once")]

    def __str__(self) -> str:
        return self.path


class MediaSeries(models.Model):
    """All of one kind and name that an attempt shows, step by step. Of many every `stride`th is kept."""

    class Kind(models.TextChoices):
        IMAGE = "image", _("Images")
        FIGURE = "figure", _("Plots")
        AUDIO = "audio", _("Audio")
        VIDEO = "video", _("Videos")
        HISTOGRAM = "histogram", _("Histograms")
        TEXT = "text", _("Texts")
        TABLE = "table", _("Tables")
        GRAPH = "graph", _("Graph")
        VECTORS = "vectors", _("Embeddings")
        PARAMS = "params", _("Parameters")

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="media")
    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=120)
    seen = models.PositiveIntegerField(default=0)  # steps that came
    stride = models.PositiveIntegerField(default=1)
    refused = models.PositiveIntegerField(default=0)  # steps that were too large, or broken, or for which was no room

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "kind", "name"], name="media_series_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class MediaItem(models.Model):
    """One step of a series. Facts stand here; an image, a table, a graph and points of vectors lie in `file`."""

    series = models.ForeignKey(MediaSeries, models.CASCADE, related_name="items")
    number = models.PositiveIntegerField()  # of those that came, from 0
    step = models.BigIntegerField()
    at = models.DateTimeField()
    file = models.CharField(max_length=80, blank=True)
    size_bytes = models.PositiveBigIntegerField(default=0)
    facts = models.JSONField(default=dict)

    class Meta:
        ordering = ["series", "step"]
        constraints = [models.UniqueConstraint(fields=["series", "step"], name="media_item_once")]

    def __str__(self) -> str:
        return f"{self.series} at {self.step}"
