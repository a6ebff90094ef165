"""Tables of development environments: what was asked for, and the signs of life that their idle time is judged by."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from datasets.models import DatasetVersion
from training.environments.querysets import EnvironmentQuerySet
from training.programs.models import CodeSnapshot
from workers.core.models import Job


class Sign(models.TextChoices):
    """What showed activity in a workspace."""

    NONE = "", ""
    START = "start", _("the workspace became ready")
    KERNEL = "kernel", _("a notebook was running")
    TERMINAL = "terminal", _("a terminal was in use")
    REQUEST = "request", _("browser activity")
    SSH = "ssh", _("SSH activity")
    CPU = "cpu", _("the CPUs were busy")
    CARD = "card", _("the GPUs were busy")
    OWNER = "owner", _("the owner marked it as needed")


class Environment(models.Model):
    """JupyterLab as a job, under the job's own number. How it runs is `job`.

    The columns below `attempt` belong to that attempt of the job and are written only by `environments.lifecycle`.
    """

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="environment")
    description = models.CharField(_("description"), max_length=300, blank=True)
    folder = models.CharField(_("folder"), max_length=255, blank=True)  # in the home; JupyterLab opens there
    code = models.ForeignKey(CodeSnapshot, models.PROTECT, null=True, blank=True, related_name="environments")
    variables = models.JSONField(_("environment variables"), default=dict)  # {"NAME": "value"}
    secrets = models.TextField(blank=True, editable=False)  # more of them, see aiplatform.lib.sealed
    secret_names = models.JSONField(default=list, editable=False)
    idle_hours = models.FloatField(_("idle hours"), null=True, blank=True)  # None: the platform's; 0: never stopped
    token = models.TextField(editable=False)  # JupyterLab's own, sealed
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)  # its job stays, for the record

    attempt = models.PositiveIntegerField(default=0, editable=False)
    vscode = models.CharField(max_length=20, blank=True, editable=False)  # the program that it opens; "": none
    ready_at = models.DateTimeField(null=True, blank=True, editable=False)  # when JupyterLab first answered
    answered_at = models.DateTimeField(null=True, blank=True, editable=False)  # when it last did
    looked_at = models.DateTimeField(null=True, blank=True, editable=False)
    alive_at = models.DateTimeField(null=True, blank=True, editable=False)  # newest sign of life
    alive_by = models.CharField(max_length=10, choices=Sign, blank=True, editable=False)
    idle_since = models.DateTimeField(null=True, blank=True, editable=False)  # `alive_at`, later by what nobody saw
    warned_at = models.DateTimeField(null=True, blank=True, editable=False)  # that it is stopped soon
    gives_at = models.DateTimeField(null=True, blank=True, editable=False)  # from when its cards are for who waits

    shown: dict[str, Any] | None = None  # facts for whoever looks at a list, see training.environments.panel

    objects = EnvironmentQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.job.name


class Input(models.Model):
    """A dataset version that an environment reads, under inputs/ by its name."""

    environment = models.ForeignKey(Environment, models.CASCADE, related_name="inputs")
    name = models.CharField(max_length=60)  # "cells v2", also after the version is gone
    version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["environment", "version"], name="input_once_per_environment")]

    def __str__(self) -> str:
        return self.name
