"""Tables of tracking: tokens of jobs, experiments by id, what runs reported beyond figures, and models of scripts."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.access.querysets import OwnedQuerySet
from training.experiments.models import Run
from workers.core.models import Attempt, Job


def _model_uid() -> str:
    return "m-" + secrets.token_hex(16)


class JobToken(models.Model):
    """A secret by which the program of one attempt reports; only its digest is kept. It ends with the attempt.

    Each time an attempt is prepared there is one more: machines add rows here, and neither read nor change them.
    """

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="tracking_tokens")
    digest = models.CharField(max_length=64, unique=True)  # sha256; the secret has 256 random bits
    opened = models.BooleanField(default=False)  # whether its script has opened the job's run

    def __str__(self) -> str:
        return f"token of {self.attempt}"


class Experiment(models.Model):
    """The id and the notes of an experiment. Runs belong to it by its name and their owner."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="experiments")
    name = models.CharField(_("name"), max_length=100)
    archived = models.BooleanField(default=False)
    tags = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="experiment_once_per_owner")]

    def __str__(self) -> str:
        return self.name


class Reported(models.Model):
    """What a run that was made by this door is beyond a run: by which job, on which data, with which models."""

    run = models.OneToOneField(Run, models.CASCADE, related_name="reported")
    job = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="reported")
    inputs = models.JSONField(default=list)  # datasets, as the script names them
    outputs = models.JSONField(default=list)  # models, by their ids
    files = models.PositiveIntegerField(default=0)
    file_bytes = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"report of {self.run}"


class MetricName(models.Model):
    """A metric whose name no curve can have, and the name that its curve has instead."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="metric_names")
    key = models.CharField(max_length=60)
    name = models.CharField(max_length=250)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="metric_name_once")]

    def __str__(self) -> str:
        return self.name


class OddPoint(models.Model):
    """A value of a metric that is no number: not a number, or infinite. No curve shows it."""

    class Value(models.TextChoices):
        NAN = "NaN", _("not a number")
        HIGH = "Infinity", _("infinite")
        LOW = "-Infinity", _("infinite, negative")

    run = models.ForeignKey(Run, models.CASCADE, related_name="odd_points")
    key = models.CharField(max_length=60)
    step = models.BigIntegerField()
    value = models.CharField(max_length=9, choices=Value)
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["run", "key", "step", "value", "at"], name="odd_point_once"),
        ]

    def __str__(self) -> str:
        return f"{self.key}={self.value} at {self.step}"


class LoggedModel(models.Model):
    """A model logged by a script, as in MLflow 3: with an id of its own, separate from the files of its run."""

    uid = models.CharField(max_length=34, default=_model_uid, unique=True, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="logged_models")
    run = models.ForeignKey(Run, models.CASCADE, null=True, blank=True, related_name="logged_models")
    experiment = models.CharField(max_length=100, blank=True)
    name = models.CharField(max_length=250)
    model_type = models.CharField(max_length=250, blank=True)
    status = models.CharField(max_length=30, default="LOGGED_MODEL_PENDING")
    params = models.JSONField(default=dict)
    tags = models.JSONField(default=dict)
    metrics = models.JSONField(default=list)
    files = models.PositiveIntegerField(default=0)
    file_bytes = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name


class TrackedModel(models.Model):
    """A name under which a script registers versions of a model."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tracked_models")
    name = models.CharField(_("name"), max_length=250)
    description = models.TextField(max_length=5000, blank=True)
    tags = models.JSONField(default=dict)
    aliases = models.JSONField(default=dict)  # alias → number of a version
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="tracked_model_once_per_owner")]

    def __str__(self) -> str:
        return self.name


class TrackedVersion(models.Model):
    """A version of a registered model: where its files are, and what people say of it."""

    model = models.ForeignKey(TrackedModel, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    source = models.CharField(max_length=500)
    run = models.ForeignKey(Run, models.SET_NULL, null=True, blank=True, related_name="tracked_versions")
    logged = models.ForeignKey(LoggedModel, models.SET_NULL, null=True, blank=True, related_name="tracked_versions")
    stage = models.CharField(max_length=20, default="None")
    description = models.TextField(max_length=5000, blank=True)
    tags = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["model", "number"], name="tracked_version_once")]

    def __str__(self) -> str:
        return f"{self.model} {self.number}"
