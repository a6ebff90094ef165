"""Tables of commands: what is run, in which folder, with which data."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from datasets.models import DatasetVersion
from training.commands.querysets import CommandQuerySet
from training.programs.launchers import Launcher
from training.programs.models import CodeSnapshot
from workers.core.models import Job


class Command(models.Model):
    """A command line or a script as a job, under the job's own number. How it runs is `job`."""

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="command")
    script = models.TextField(_("command"))  # one line or many; "#!" names its interpreter
    code = models.ForeignKey(CodeSnapshot, models.PROTECT, null=True, blank=True, related_name="commands")
    output_path = models.CharField(_("output path"), max_length=255, blank=True)  # in the code; becomes outputs/
    variables = models.JSONField(_("environment variables"), default=dict)  # {"NAME": "value"}
    secrets = models.TextField(blank=True, editable=False)  # more of them, see aiplatform.lib.sealed
    secret_names = models.JSONField(default=list, editable=False)
    writes_checkpoints = models.BooleanField(_("writes checkpoints"), default=False)  # it obeys the control file

    launcher = models.CharField(_("launcher"), max_length=12, choices=Launcher, default=Launcher.ONCE)
    processes = models.PositiveSmallIntegerField(_("processes per node"), default=0)  # 0: one for each card
    worker_script = models.TextField(_("command on the other nodes"), blank=True)  # "": the same

    objects = CommandQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.job.name


class Input(models.Model):
    """A dataset version that a command reads, under inputs/ by its name."""

    command = models.ForeignKey(Command, models.CASCADE, related_name="inputs")
    name = models.CharField(max_length=60)  # "cells v2", also after the version is gone
    version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["command", "version"], name="input_once_per_command")]

    def __str__(self) -> str:
        return self.name
