"""Tables of image tasks, the shapes on them, and every edit."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from annotation.models.projects import AnnotationSet, LabelClass
from annotation.querysets import InSetQuerySet, InTaskQuerySet
from datasets import shapes


class ImageTask(models.Model):
    """An image to annotate. `number` counts 1…n through its set without gaps."""

    class State(models.TextChoices):
        NEW = "new", pgettext_lazy("image", "New")
        IN_PROGRESS = "in_progress", _("In progress")
        SUBMITTED = "submitted", _("Submitted")
        REJECTED = "rejected", _("Sent back")
        ACCEPTED = "accepted", _("Accepted")

    set = models.ForeignKey(AnnotationSet, models.CASCADE, related_name="tasks")
    asset = models.ForeignKey("datasets.Asset", models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=11, choices=State, default=State.NEW)
    empty = models.BooleanField(default=False)  # confirmed to show no object
    shape_count = models.PositiveIntegerField(default=0)
    rev = models.PositiveIntegerField(default=0)  # edits stored so far
    updated_at = models.DateTimeField(null=True, blank=True)
    updated_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    submitted_at = models.DateTimeField(null=True, blank=True)
    coco_id = models.BigIntegerField(null=True, editable=False)  # its id in the source's annotations; None: its own pk
    remark = models.CharField(max_length=500, blank=True)  # what the reviewer requested, until the image is accepted

    objects = InSetQuerySet.as_manager()

    class Meta:
        ordering = ["set", "number"]
        verbose_name = _("image")
        verbose_name_plural = _("images")
        constraints = [
            models.UniqueConstraint(fields=["set", "number"], name="image_task_number_once"),
            models.UniqueConstraint(fields=["set", "asset"], name="image_task_asset_once"),
        ]
        indexes = [models.Index(fields=["set", "state", "number"], name="image_task_state")]

    def __str__(self) -> str:
        return f"{self.set} #{self.number}"


class Review(models.Model):
    """A review of a submitted image. Append-only; the image keeps its current state and remark."""

    class Verdict(models.TextChoices):
        ACCEPTED = "accepted", _("Accepted")
        REJECTED = "rejected", _("Sent back")

    task = models.ForeignKey(ImageTask, models.CASCADE, related_name="reviews")
    verdict = models.CharField(max_length=8, choices=Verdict)
    comment = models.CharField(max_length=500, blank=True)
    rev = models.PositiveIntegerField()  # of the image when it was judged
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(default=now)

    objects = InTaskQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("review")
        verbose_name_plural = _("reviews")

    def __str__(self) -> str:
        return f"{self.task}: {self.get_verdict_display()}"


class Shape(models.Model):
    """One object on one image, in pixels of the upright image.

    Its COCO annotation id is the one it came with; objects drawn here count on behind those by their pk.

    Written by annotation.services.journal only; a deleted shape stays as a row, so that its
    revision goes on counting when the deletion is undone.
    """

    class Source(models.TextChoices):
        MANUAL = "manual", _("Created")
        MODEL = "model", _("Predicted by a model")
        IMPORTED = "imported", _("Imported with the dataset")

    task = models.ForeignKey(ImageTask, models.CASCADE, related_name="shapes")
    uuid = models.UUIDField()  # given by the client, so that an edit can name a shape the server has not seen
    label = models.ForeignKey(LabelClass, models.RESTRICT, related_name="shapes")
    kind = models.CharField(max_length=20, choices=shapes.choices)
    rings = models.JSONField()  # [[x0, y0, x1, y1, …], …]; what the points mean is the kind's own
    x = models.FloatField()
    y = models.FloatField()
    width = models.FloatField()
    height = models.FloatField()
    area = models.FloatField()  # px²; 0 for kinds that cover none
    source = models.CharField(max_length=8, choices=Source, default=Source.MANUAL)
    coco_id = models.BigIntegerField(null=True, editable=False)
    # {"bbox", "area", "iscrowd", …} of the annotation it came as: exported unchanged until the shape is changed
    came_as = models.JSONField(null=True, editable=False)
    rev = models.PositiveIntegerField(default=1)
    deleted = models.BooleanField(default=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    updated_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    objects = InTaskQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["task", "uuid"], name="shape_uuid_once_per_image"),
            models.CheckConstraint(condition=Q(area__gte=0), name="shape_area_is_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.pk}"


class ShapeEvent(models.Model):
    """An edit as it was sent. Append-only; the client's own id makes a repeated edit count once."""

    class Op(models.TextChoices):
        PUT = "put", _("Created or changed")
        DELETE = "delete", _("Deleted")

    task = models.ForeignKey(ImageTask, models.CASCADE, related_name="events")
    uuid = models.UUIDField()  # the client's id of this edit
    shape = models.UUIDField()
    op = models.CharField(max_length=6, choices=Op)
    rev = models.PositiveIntegerField()  # of the shape, after this edit
    data = models.JSONField(null=True)  # {"kind", "label", "rings"}; null for a deletion
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(default=now)

    objects = InTaskQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["task", "uuid"], name="shape_event_once"),
            models.UniqueConstraint(fields=["task", "shape", "rev"], name="shape_revision_once"),
        ]

    def __str__(self) -> str:
        return f"{self.op} {self.shape} r{self.rev}"
