"""Tables of watched videos."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from aiplatform.lib.titles import TITLE
from inference.video.querysets import VideoAnalysisQuerySet, VideoEventQuerySet, VideoFileQuerySet


class VideoFile(models.Model):
    """An uploaded video; it is stored in data root/videos/UID."""

    name = models.CharField(_("name"), max_length=100, validators=[TITLE])
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="videos")
    uid = models.CharField(max_length=32, unique=True)
    size_bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=now)

    objects = VideoFileQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        return Path(settings.DATA_ROOT) / "videos" / self.uid


class VideoAnalysis(models.Model):
    """A version that watches a video or a stream. How it runs is `job`."""

    job = models.OneToOneField("workers.Job", models.CASCADE, related_name="video")
    version = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="video_analyses")
    model_label = models.CharField(max_length=120)  # "cells v2", also after the version was deleted
    video = models.ForeignKey(
        VideoFile, models.SET_NULL, null=True, related_name="analyses"
    )  # None: a stream, or deleted
    is_stream = models.BooleanField(default=False)
    source_label = models.CharField(max_length=300)  # the video's name, or the stream's address without its password
    secrets = models.TextField(blank=True, editable=False)  # the whole address of a stream, see aiplatform.lib.sealed
    params = models.JSONField(default=dict)  # lines, zones, classes, min_score, max_rate, film, interval_s, still_s
    summary = models.JSONField(default=dict)  # objects, events, lines, zones, once it has ended
    webhook_url = models.CharField(max_length=500, blank=True)
    webhook_secret = models.CharField(max_length=64, blank=True, editable=False)
    published_attempt = models.PositiveIntegerField(default=0)  # whose outputs hold the results; 0: none yet
    # how far the events of an attempt have been read
    read_attempt = models.PositiveIntegerField(default=0)
    read_bytes = models.PositiveBigIntegerField(default=0)

    objects = VideoAnalysisQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.job.name


class VideoEvent(models.Model):
    """An event in a video: a line is crossed, a zone entered or left, an object stays long, or a camera hangs."""

    class Type(models.TextChoices):
        CROSSED = "crossed", _("Crossed")
        ENTERED = "entered", _("Entered")
        LEFT = "left", pgettext_lazy("zone", "Left")
        LOITERED = "loitered", _("Stayed long")
        FROZEN = "frozen", _("Frozen image")
        BLACK = "black", _("Black image")
        OVER = "over", _("Image recovered")

    analysis = models.ForeignKey(VideoAnalysis, models.CASCADE, related_name="events")
    key = models.CharField(max_length=40)  # what the program calls it: the same in each attempt
    at = models.FloatField()  # seconds since the source began
    type = models.CharField(max_length=8, choices=Type)
    place = models.CharField(max_length=40)  # name of the line or zone; "": of the source itself
    way = models.CharField(max_length=3, blank=True)  # in, out
    object = models.PositiveIntegerField()  # number of the track; 0: none
    class_id = models.IntegerField(null=True)
    class_name = models.CharField(max_length=100, blank=True)
    score = models.FloatField(null=True)
    area = models.JSONField(default=list)  # x1 y1 x2 y2, shares of the picture's sides
    seconds = models.FloatField(null=True)  # in the zone, of who left it or stays
    happened_at = models.DateTimeField(null=True)  # of a stream

    objects = VideoEventQuerySet.as_manager()

    class Meta:
        ordering = ["at", "pk"]
        constraints = [models.UniqueConstraint(fields=["analysis", "key"], name="video_event_once")]
        indexes = [models.Index(fields=["analysis", "at"], name="video_event_in_order")]

    def __str__(self) -> str:
        return f"{self.get_type_display()} {self.place}"
