"""The table of evaluation parameter sets; inference/models.py makes it known to Django."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.querysets import OwnedQuerySet
from aiplatform.lib import search
from aiplatform.lib.titles import TITLE
from inference.registry import task_labels


class EvaluationSetQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("inference.evaluationset", "pk")

    def for_list(self) -> Self:
        return self.select_related("owner", "version__dataset", "code", "image")

    def named_like(self, text: str) -> Self:
        """Name, description or dataset contains each of the words."""
        return search.having(self, text, "name", "description", "version_label", "task")


class EvaluationSet(models.Model):
    """What an evaluation was begun with, under a name, to begin others with."""

    class Visibility(models.TextChoices):
        PRIVATE = "private", _("Private")
        GROUP = "group", _("My groups")
        PUBLIC = "public", _("Public")

    name = models.CharField(_("name"), max_length=50, validators=[TITLE])
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="evaluation_sets")
    description = models.CharField(_("description"), max_length=200, blank=True)
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    task = models.CharField(max_length=15, choices=task_labels.choices)  # of the models it is for; never changes
    version = models.ForeignKey("datasets.DatasetVersion", models.SET_NULL, null=True, related_name="+")
    version_label = models.CharField(max_length=80, blank=True)  # also after it is gone; "": none was named
    split = models.CharField(_("split"), max_length=10, blank=True)  # as evaluations have it, or "auto"
    params = models.JSONField(default=dict)
    # an own script that judges in place of ours, see scripted/
    code = models.ForeignKey("training.CodeSnapshot", models.PROTECT, null=True, related_name="+")
    start_file = models.CharField(max_length=255, blank=True)
    arguments = models.CharField(max_length=2000, blank=True)
    output_path = models.CharField(max_length=255, blank=True)
    image = models.ForeignKey("images.Image", models.SET_NULL, null=True, related_name="+")
    image_label = models.CharField(max_length=160, blank=True)  # also after it is gone; "": the platform's own
    # what it asks of the machines
    device_kind = models.CharField(max_length=8, default="gpu")
    device_model = models.CharField(max_length=100, blank=True)
    gpus_per_node = models.PositiveSmallIntegerField(default=0)
    cpus = models.FloatField(default=2.0)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = EvaluationSetQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="evaluation_set_name_once_per_owner")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_scripted(self) -> bool:
        return bool(self.start_file)
