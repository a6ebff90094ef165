"""Tables of the model registry: models, versions, aliases, jobs about a model."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.models import UserGroup
from aiplatform.lib.message_field import MessageField
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from inference.kit.task_kinds import TASKS
from inference.registry import task_labels
from inference.registry.formats.folder import WEIGHTS
from inference.registry.querysets import (
    ModelAliasQuerySet,
    ModelImportQuerySet,
    ModelQuerySet,
    ModelTaskQuerySet,
    ModelVersionQuerySet,
)
from workers.core.models import Job


class Visibility(models.TextChoices):
    PRIVATE = "private", _("Private")
    GROUP = "group", _("My groups")
    PUBLIC = "public", _("Public")


class Stage(models.TextChoices):
    """How far a version has come; stages.py is its only writer."""

    CANDIDATE = "candidate", _("Candidate")
    APPROVED = "approved", _("Approved")
    ARCHIVED = "archived", _("Archived")


class Model(models.Model):
    """A named model that grows by versions."""

    name = models.CharField(_("name"), max_length=100, validators=[TITLE])
    description = models.CharField(_("description"), max_length=500, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="models")
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    packages_pictures = models.BooleanField(
        _("Packages include images of the dataset"),
        default=True,
        help_text=_("For the self-test of edge devices, up to two. Otherwise only synthetic images are included."),
    )
    card = models.JSONField(default=dict)  # {"purpose": Markdown, …}, see cards.py
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
        IMPORT = "import", _("Import")  # with a task and classes that the user declared
        JOB = "job", _("Outputs of a job")  # chosen by hand
        CONVERTED = "convert", _("Conversion")  # of another version of the model
        FILES = "files", _("Own files")
        COMPOSED = "compose", _("Combined model")  # of other versions

    model = models.ForeignKey(Model, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    task = models.CharField(max_length=15, choices=task_labels.choices)
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
    dataset_label = models.CharField(max_length=80, blank=True)  # "cells v2", kept after the version is deleted
    code_label = models.CharField(max_length=300, blank=True)  # preset, or origin of custom code
    parent = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="children")  # fine-tuned
    parent_label = models.CharField(max_length=220, blank=True)  # OWNER/NAME v2, kept after it is deleted
    teacher = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="students")  # distilled
    teacher_label = models.CharField(max_length=220, blank=True)
    # how far it has come
    stage = models.CharField(max_length=9, choices=Stage, default=Stage.CANDIDATE, editable=False)
    stage_reason = models.CharField(max_length=500, blank=True, editable=False)
    stage_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    stage_at = models.DateTimeField(null=True, editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)

    objects = ModelVersionQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["model", "number"], name="model_version_number_once"),
            models.UniqueConstraint(
                fields=["job", "attempt"], condition=Q(source="training"), name="model_once_per_attempt"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model.name} v{self.number}"

    @property
    def path(self) -> Path:
        return self.model.folder / f"v{self.number}"

    @property
    def storage_path(self) -> str:
        """Where its files lie, below the data folder of the platform."""
        return str(self.path.relative_to(settings.DATA_ROOT))

    @property
    def can_serve(self) -> bool:
        """Whether there is an ONNX file a service can run."""
        return self.task != WEIGHTS

    @property
    def can_be_evaluated(self) -> bool:
        """Whether its predictions can be read: the version has a description."""
        return self.task in TASKS

    @property
    def is_archived(self) -> bool:
        return self.stage == Stage.ARCHIVED


class ModelAlias(models.Model):
    """A name of one version of a model that can be moved to another version: champion."""

    model = models.ForeignKey(Model, models.CASCADE, related_name="aliases")
    version = models.ForeignKey(ModelVersion, models.CASCADE, related_name="aliases")
    name = models.CharField(max_length=50)
    moved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    moved_at = models.DateTimeField(default=now)

    objects = ModelAliasQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["model", "name"], name="model_alias_once")]

    def __str__(self) -> str:
        return f"{self.model}@{self.name}"


class GroupApproval(models.Model):
    """A group whose models are approved by another user than the one who made the version."""

    group = models.OneToOneField(UserGroup, models.CASCADE, related_name="model_approval")
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")

    def __str__(self) -> str:
        return str(self.group)


class ModelTask(models.Model):
    """A job about a model: measure it, count what it learned from, read an archive, or try one; `job` runs it."""

    class Act(models.TextChoices):
        MEASURE = "measure", _("Measure speed")
        CONVERT = "convert", _("PyTorch archive converted")
        BASELINE = "baseline", _("Compute training statistics")
        TRY = "try", _("Try on images")
        IMPORT = "import", _("Import model files")
        TORCH = "torch", _("PyTorch export")

    job = models.OneToOneField(Job, models.CASCADE, related_name="model_task")
    act = models.CharField(max_length=8, choices=Act)
    version = models.ForeignKey(ModelVersion, models.CASCADE, null=True, related_name="measurements")
    figures = models.JSONField(default=dict)  # what was measured, with its conditions
    made = models.ForeignKey(ModelVersion, models.SET_NULL, null=True, related_name="+")  # of what was brought
    message = MessageField()  # why nothing was made of it

    objects = ModelTaskQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.job.name


class ModelImport(models.Model):
    """Files of a model that wait until a user confirms how they are read; removed with the confirmation."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(_("name"), max_length=100, blank=True)  # of a new model
    model = models.ForeignKey(Model, models.CASCADE, null=True, blank=True, related_name="+")  # that gets a version
    origin = models.JSONField(default=dict)  # source, job, attempt and label, as in registration.Origin
    torch = models.CharField(max_length=10, blank=True)  # suffix of a PyTorch archive, which only a job opens
    declared = models.JSONField(default=dict)  # what the user entered
    contents = models.JSONField(default=dict)  # task and number of classes, of files that describe themselves
    trial = models.ForeignKey(ModelTask, models.SET_NULL, null=True, blank=True, related_name="imports")
    created_at = models.DateTimeField(default=now)

    objects = ModelImportQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name or str(self.model)

    @property
    def folder(self) -> Path:
        return Path(settings.DATA_ROOT) / "models" / "imports" / str(self.pk)
