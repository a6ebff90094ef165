"""Tables of experiments: runs with what they were given, what people say of them, and saved views of their table."""

from __future__ import annotations

import json
import secrets
from typing import Any

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from training.experiments.querysets import RunQuerySet, ViewQuerySet
from training.runs.models import TrainingJob
from workers.core.models import Figures, Job


def _uid() -> str:
    return secrets.token_hex(16)


class Visibility(models.TextChoices):
    PRIVATE = "private", _("Private")
    GROUP = "group", _("My groups")
    PUBLIC = "public", _("Public")


class Run(models.Model):
    """Something with parameters and figures that can be compared: a training or a command, a part of one (a trial
    that its script reports by itself), or what a script on another machine reported.

    A run with a job has the job's name, state and times, and its figures are the curves of the job's attempts.
    """

    uid = models.CharField(max_length=32, default=_uid, unique=True, editable=False)  # what MLflow calls run_id
    job = models.OneToOneField(Job, models.CASCADE, null=True, blank=True, related_name="run")
    parent = models.ForeignKey("self", models.CASCADE, null=True, blank=True, related_name="children")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="runs")
    visibility = models.CharField(
        _("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE
    )  # of its figures, parameters and notes; the job itself stays its owner's
    experiment = models.CharField(_("experiment"), max_length=100, blank=True)  # by whose name runs belong together
    notes = models.TextField(_("notes"), max_length=20_000, blank=True)  # Markdown
    archived = models.BooleanField(_("archived"), default=False)
    created_at = models.DateTimeField(default=now, db_index=True)

    # of one without a job
    name = models.CharField(_("name"), max_length=100, blank=True)
    state = models.CharField(max_length=10, blank=True)  # running, succeeded, failed, stopped
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["owner", "experiment"], name="run_of_experiment")]

    def __str__(self) -> str:
        return self.job.name if self.job is not None else self.name

    @property
    def shown_state(self) -> str:
        """Of its job, where it has one."""
        return self.job.state if self.job is not None else self.state

    @property
    def training(self) -> TrainingJob | None:
        """What it trained, if it is a training of the platform."""
        return getattr(self.job, "training", None)


class Param(models.Model):
    """A parameter a run was given, as text and, where it is one, as a number."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="params")
    key = models.CharField(max_length=250)
    text = models.CharField(max_length=6000, blank=True)
    number = models.FloatField(null=True, blank=True)  # of a number, and of true and false as 1 and 0

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="param_once_per_run")]
        indexes = [models.Index(fields=["key", "number"], name="param_by_number")]

    def __str__(self) -> str:
        return f"{self.key}={self.text}"

    @property
    def value(self) -> Any:
        """As it was given: a number, true or false, a list, or its text."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return self.text


class Tag(models.Model):
    """A tag of a run, set by a user or by its script, optionally with a value."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="tags")
    key = models.CharField(max_length=250)
    value = models.CharField(max_length=8000, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="tag_once_per_run")]
        indexes = [models.Index(fields=["key"], name="tag_by_key")]

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key


class Star(models.Model):
    """A user's bookmark of a run."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="stars")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "user"], name="star_once")]

    def __str__(self) -> str:
        return f"{self.user} * {self.run}"


class RunCurve(Figures):
    """One key of a run that has no job."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="curves")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="run_curve_once")]


class View(models.Model):
    """A filter, columns, order and grouping of the run table under a name, with an address of its own."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="run_views")
    name = models.CharField(_("name"), max_length=60)
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    query = models.JSONField(default=dict)  # {"filter", "columns", "sort", "group", "archived"}
    updated_at = models.DateTimeField(auto_now=True)

    objects = ViewQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="run_view_once_per_owner")]

    def __str__(self) -> str:
        return self.name
