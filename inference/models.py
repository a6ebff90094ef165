"""Tables of models in use: registry, evaluations, services."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from inference import model_tasks
from inference.formats.folder import WEIGHTS
from inference.querysets import EvaluationQuerySet, ModelQuerySet, ModelVersionQuerySet, ServiceQuerySet
from inference.task_kinds import TASKS
from workers.models import Job
from workers.states import JobState

#: What an evaluation may measure on, for people; a dataset version may have splits of other names.
SPLIT_WORDS: dict[str, Any] = {
    "test": _("Test"),
    "val": _("Validation"),
    "train": _("Training"),
    "unseen": _("Images it did not learn from"),
    "": _("All images"),
}


class Visibility(models.TextChoices):
    PRIVATE = "private", _("Private")
    GROUP = "group", _("My groups")
    PUBLIC = "public", _("Public")


class Model(models.Model):
    """A named model that grows by versions."""

    name = models.CharField(_("name"), max_length=100, validators=[TITLE])
    description = models.CharField(_("description"), max_length=500, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="models")
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ModelQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="model_name_once_per_owner")]

    def __str__(self) -> str:
        return self.name

    @property
    def folder(self) -> Path:
        return Path(settings.DATA_ROOT) / "models" / str(self.pk)


class ModelVersion(models.Model):
    """Files that never change, and their origin. The row exists once the files are complete."""

    class Source(models.TextChoices):
        TRAINING = "training", _("Training")
        UPLOAD = "upload", _("Upload")

    model = models.ForeignKey(Model, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    task = models.CharField(max_length=15, choices=model_tasks.choices)
    source = models.CharField(max_length=8, choices=Source)
    architecture = models.CharField(max_length=100, blank=True)
    preset = models.CharField(max_length=50, blank=True)
    classes = models.JSONField(default=list)  # [{"id": 1, "name": "RBC"}, …]
    metrics = models.JSONField(default=dict)  # final figures of its training
    params = models.JSONField(default=dict)  # what it was trained with
    facts = models.JSONField(default=dict)  # inputs, outputs, opset, number of parameters, verification
    files = models.JSONField(default=list)  # [{"name", "size", "sha256"}, …]
    size_bytes = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)  # of the weights that run
    # lineage
    job = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="model_versions")
    attempt = models.PositiveIntegerField(default=0)
    dataset_version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, blank=True, related_name="models")
    dataset_label = models.CharField(max_length=80, blank=True)  # "cells v2", also after the version is gone
    code_label = models.CharField(max_length=300, blank=True)  # preset, or origin of the person's own code
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)

    objects = ModelVersionQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["model", "number"], name="model_version_number_once"),
            models.UniqueConstraint(
                fields=["job", "attempt"], condition=Q(job__isnull=False), name="model_once_per_attempt"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model.name} v{self.number}"

    @property
    def path(self) -> Path:
        return self.model.folder / f"v{self.number}"

    @property
    def can_serve(self) -> bool:
        """Whether there is an ONNX file a service can run."""
        return self.task != WEIGHTS

    @property
    def can_be_evaluated(self) -> bool:
        """Whether its answers can be understood: somebody described it."""
        return self.task in TASKS


class Evaluation(models.Model):
    """A model version evaluated on a split of a dataset version. How it runs is `job`."""

    job = models.OneToOneField(Job, models.CASCADE, related_name="evaluation")
    model_version = models.ForeignKey(ModelVersion, models.SET_NULL, null=True, related_name="evaluations")
    model_label = models.CharField(max_length=120)
    version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, related_name="evaluations")
    version_label = models.CharField(max_length=80)
    split = models.CharField(_("split"), max_length=10, blank=True)  # "": all images; "unseen": not learned from
    task = models.CharField(max_length=15)
    params = models.JSONField(default=dict)
    metrics = models.JSONField(default=dict)  # the summary, once judged
    published_attempt = models.PositiveIntegerField(default=0)  # whose outputs hold the results; 0: none yet

    objects = EvaluationQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.job.name

    @property
    def split_word(self) -> Any:
        """What it measures on, for people."""
        return SPLIT_WORDS.get(self.split, self.split)


class Service(models.Model):
    """A model version that answers at an address. Each start is a job of its own; `job` is the newest."""

    STATES: ClassVar[dict[str, str]] = {  # job state → what people see; running depends on the health check
        JobState.SUCCEEDED: "stopped",
        JobState.FINISHED_EARLY: "stopped",
        JobState.PAUSED: "paused",
    }

    name = models.CharField(_("name"), max_length=50, validators=[TITLE])
    slug = models.SlugField(max_length=80, unique=True)  # in its address
    description = models.CharField(_("description"), max_length=200, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="services")
    visibility = models.CharField(_("who may call it"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    model_version = models.ForeignKey(ModelVersion, models.SET_NULL, null=True, related_name="services")
    model_label = models.CharField(max_length=130, blank=True)  # what the model was called, after it was deleted
    job = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="services")
    ready_attempt = models.PositiveIntegerField(default=0)  # attempt of `job` that was seen to answer
    options = models.JSONField(default=dict)  # cluster, gpus_per_node, cpus, max_batch, max_delay_ms, priority
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ServiceQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="service_name_once_per_owner")]

    def __str__(self) -> str:
        return self.name

    @property
    def model_name(self) -> str:
        """Its model and version, kept after they were deleted."""
        return str(self.model_version) if self.model_version_id else self.model_label

    @property
    def url(self) -> str:
        """Its address on this site."""
        return f"/serve/{self.slug}"

    @property
    def is_up(self) -> bool:
        """Whether its job is requested and not over: it runs, or waits."""
        return self.job is not None and not self.job.is_final

    @property
    def answers(self) -> bool:
        """Whether the running attempt has answered."""
        job = self.job
        return job is not None and job.state == JobState.RUNNING and self.ready_attempt == job.attempt_number

    @property
    def state(self) -> str:
        """stopped, queued, assigned, starting, ready, paused, stopping, failed, lost."""
        if self.job is None:
            return "stopped"
        if self.job.state == JobState.RUNNING:
            return "ready" if self.answers else "starting"
        return self.STATES.get(self.job.state, str(self.job.state))

    @property
    def running(self) -> timedelta | None:
        """How long the newest start has run; stops growing once it is over."""
        if self.job is None or self.job.started_at is None:
            return None
        return (self.job.ended_at if self.job.is_final and self.job.ended_at else now()) - self.job.started_at
