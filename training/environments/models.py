"""Tables of development environments: what was asked for, and the signs of life that their idle time is judged by."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from training.environments.querysets import EnvironmentQuerySet
from training.programs.models import CodeSnapshot, DatasetInput, ProgramRow
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


class Environment(ProgramRow):
    """JupyterLab as a job, under the job's own number. How it runs is `job`.

    The columns below `attempt` belong to that attempt of the job and are written only by `environments.lifecycle`.
    """

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="environment")
    description = models.CharField(_("description"), max_length=300, blank=True)
    folder = models.CharField(_("folder"), max_length=255, blank=True)  # in the home; JupyterLab opens there
    code = models.ForeignKey(CodeSnapshot, models.PROTECT, null=True, blank=True, related_name="environments")
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


class Input(DatasetInput):
    """A dataset version that an environment reads, under inputs/ by its name."""

    environment = models.ForeignKey(Environment, models.CASCADE, related_name="inputs")

    class Meta(DatasetInput.Meta):
        constraints = [models.UniqueConstraint(fields=["environment", "version"], name="input_once_per_environment")]
