"""Tables of trainings: jobs, inputs, parameter sets, planned trainings."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.access.querysets import OwnedQuerySet
from aiplatform.lib.message_field import MessageField
from aiplatform.lib.titles import TITLE
from datasets.models import Dataset, DatasetVersion, Import
from training.programs.models import CodeSnapshot, DatasetInput, ProgramRow
from training.runs.querysets import ParameterSetQuerySet, TrainingJobQuerySet
from workers.core.models import Job


class TrainingJob(ProgramRow):
    """A training: preset or own code, data, hyper-parameters. How it runs is `job`."""

    job = models.OneToOneField(Job, models.CASCADE, related_name="training")
    description = models.CharField(_("description"), max_length=500, blank=True)
    preset = models.CharField(_("preset"), max_length=30, blank=True)  # "": own code
    code = models.ForeignKey(CodeSnapshot, models.PROTECT, null=True, blank=True, related_name="trainings")
    start_file = models.CharField(_("entry point"), max_length=255, blank=True)  # relative to the code
    arguments = models.CharField(_("arguments"), max_length=2000, blank=True)  # argv of own code, as typed
    script = models.TextField(_("command"), blank=True)  # own code's command line, in place of a start file
    worker_script = models.TextField(_("command on the other nodes"), blank=True)  # "": the same
    launcher = models.CharField(
        _("launcher"), max_length=12, blank=True
    )  # see programs.layout; "": a start file once, or by torchrun where it has several processes or machines
    writes_checkpoints = models.BooleanField(_("writes checkpoints"), default=False)  # own code that says so
    params = models.JSONField(_("parameters"), default=dict)
    extra = models.JSONField(_("additional parameters"), default=dict)  # typed -gpu -hint -keep …
    processes = models.PositiveSmallIntegerField(
        _("processes per node"), default=0
    )  # 0: one per card, or one; own code has 1
    output_path = models.CharField(_("output path"), max_length=255, blank=True)  # in the code; becomes outputs/
    version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, blank=True, related_name="trainings")
    version_label = models.CharField(max_length=60, blank=True)  # "cells v2", also after it is gone; "": without data
    eval_version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, blank=True, related_name="+")
    parent = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="clones")
    metrics = models.JSONField(default=dict)  # final figures, once it ended well
    published_attempt = models.PositiveIntegerField(default=0)  # attempt the figures and the model came from

    objects = TrainingJobQuerySet.as_manager()

    class Meta(ProgramRow.Meta):
        constraints = [
            models.CheckConstraint(
                condition=(Q(preset="") & (Q(code__isnull=False) | ~Q(script="")))
                | (~Q(preset="") & Q(code=None, script="")),
                name="training_preset_or_code",
            )
        ]

    @property
    def is_own_code(self) -> bool:
        return not self.preset

    @property
    def progress(self) -> float | None:
        """Progress 0..1; 1 for a completed training, whatever it reported last."""
        return 1.0 if self.job.state in ("succeeded", "finished_early") else self.job.progress


class TrainingInput(DatasetInput):
    """A further dataset version that own code reads, under inputs/ by its name."""

    training = models.ForeignKey(TrainingJob, models.CASCADE, related_name="inputs")

    class Meta(DatasetInput.Meta):
        constraints = [models.UniqueConstraint(fields=["training", "version"], name="training_input_once")]


class ParameterSet(models.Model):
    """Parameters of a preset under a name, to start trainings from."""

    class Visibility(models.TextChoices):
        PRIVATE = "private", _("Private")
        GROUP = "group", _("My groups")
        PUBLIC = "public", _("Public")

    name = models.CharField(_("name"), max_length=50, validators=[TITLE])
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="parameter_sets")
    description = models.CharField(_("description"), max_length=200, blank=True)
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    preset = models.CharField(_("preset"), max_length=30)
    params = models.JSONField(_("parameters"), default=dict)  # of its newest version: what differs from the defaults
    number = models.PositiveIntegerField(default=1)  # of its newest version
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ParameterSetQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="parameter_set_name_once_per_owner")]

    def __str__(self) -> str:
        return self.name


class ParameterSetVersion(models.Model):
    """One version of a parameter set; never changed afterwards."""

    parameter_set = models.ForeignKey(ParameterSet, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    params = models.JSONField(default=dict)  # only what differs from the preset's defaults
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    made_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["parameter_set", "-number"]
        constraints = [models.UniqueConstraint(fields=["parameter_set", "number"], name="parameter_set_version_once")]

    def __str__(self) -> str:
        return f"{self.parameter_set} v{self.number}"


class ParameterSetUse(models.Model):
    """The parameter set that a training was begun from."""

    training = models.OneToOneField(TrainingJob, models.CASCADE, primary_key=True, related_name="set_use")
    version = models.ForeignKey(ParameterSetVersion, models.SET_NULL, null=True, related_name="uses")
    name = models.CharField(max_length=70)  # "gentle v2", also after the set is gone
    params = models.JSONField(default=dict)  # what the version said, to see what was changed for this training

    def __str__(self) -> str:
        return self.name


class PlannedTraining(models.Model):
    """A training that is submitted by itself once its data is imported."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting for its data")
        STARTED = "started", _("Started")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="planned_trainings")
    dataset = models.ForeignKey(Dataset, models.SET_NULL, null=True, related_name="+")
    data_import = models.ForeignKey(Import, models.SET_NULL, null=True, related_name="+")
    dataset_name = models.CharField(max_length=60)  # also after the dataset is gone
    request = models.JSONField(default=dict)  # see planned.serialize_request
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    message = MessageField()  # why it failed
    training = models.OneToOneField(TrainingJob, models.SET_NULL, null=True, blank=True, related_name="plan")
    created_at = models.DateTimeField(default=now)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["id"], condition=Q(state="waiting"), name="planned_training_waiting")]

    def __str__(self) -> str:
        return str(self.request.get("name") or self.dataset_name)


class TrainingDefaults(models.Model):
    """What trainings take where their request says nothing; one row, written in the admin site."""

    extra = models.CharField(
        _("additional parameters"),
        max_length=1000,
        blank=True,
        help_text=_("For every training without its own, for example -keep:20 -CloseDelay:5."),
    )

    class Meta:
        verbose_name = _("training defaults")
        verbose_name_plural = _("training defaults")

    def __str__(self) -> str:
        return self.extra
