"""Tables of commands: what is run, in which folder, with which data."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from training.commands.querysets import CommandQuerySet
from training.programs.launchers import Launcher
from training.programs.models import CodeSnapshot, DatasetInput, ProgramRow
from workers.core.models import Job


class Command(ProgramRow):
    """A command line or a script as a job, under the job's own number. How it runs is `job`."""

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="command")
    script = models.TextField(_("command"))  # one line or many; "#!" names its interpreter
    code = models.ForeignKey(CodeSnapshot, models.PROTECT, null=True, blank=True, related_name="commands")
    output_path = models.CharField(_("output path"), max_length=255, blank=True)  # in the code; becomes outputs/
    writes_checkpoints = models.BooleanField(_("writes checkpoints"), default=False)  # it obeys the control file

    launcher = models.CharField(_("launcher"), max_length=12, choices=Launcher, default=Launcher.ONCE)
    processes = models.PositiveSmallIntegerField(_("processes per node"), default=0)  # 0: one for each card
    worker_script = models.TextField(_("command on the other nodes"), blank=True)  # "": the same

    objects = CommandQuerySet.as_manager()


class Input(DatasetInput):
    """A dataset version that a command reads, under inputs/ by its name."""

    command = models.ForeignKey(Command, models.CASCADE, related_name="inputs")

    class Meta(DatasetInput.Meta):
        constraints = [models.UniqueConstraint(fields=["command", "version"], name="input_once_per_command")]
