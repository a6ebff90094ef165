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

from accounts.models import UserGroup
from aiplatform.lib.message_field import MessageField
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from inference import model_tasks
from inference.batch import tables as _batch_tables  # noqa: F401  Django looks for tables here
from inference.composing import tables as _composing_tables  # noqa: F401  Django looks for tables here
from inference.conversion import tables as _conversion_tables  # noqa: F401  Django looks for tables here
from inference.edge import tables as _edge_tables  # noqa: F401  Django looks for tables here
from inference.evaluation_sets import tables as _evaluation_sets_tables  # noqa: F401  Django looks for tables here
from inference.feedback import tables as _feedback_tables  # noqa: F401  Django looks for tables here
from inference.formats.folder import WEIGHTS
from inference.keys import tables as _keys_tables  # noqa: F401  Django looks for tables here
from inference.monitoring import tables as _monitoring_tables  # noqa: F401  Django looks for tables here
from inference.push import tables as _push_tables  # noqa: F401  Django looks for tables here
from inference.querysets import (
    EvaluationQuerySet,
    ModelAliasQuerySet,
    ModelQuerySet,
    ModelTaskQuerySet,
    ModelVersionQuerySet,
    PromotionRuleQuerySet,
    ServiceQuerySet,
)
from inference.scaling import tables as _scaling_tables  # noqa: F401  Django looks for tables here
from inference.scripted import tables as _scripted_tables  # noqa: F401  Django looks for tables here
from inference.selftest import tables as _selftest_tables  # noqa: F401  Django looks for tables here
from inference.task_kinds import TASKS
from inference.traffic import tables as _traffic_tables  # noqa: F401  Django looks for tables here
from inference.video import tables as _video_tables  # noqa: F401  Django looks for tables here
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


class Stage(models.TextChoices):
    """How far a version has come; services/stages.py is its only writer."""

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
        _("Packages carry pictures of the dataset"),
        default=True,
        help_text=_("For the self-test of edge devices, up to two. Without them drawn pictures alone go along."),
    )
    card = models.JSONField(default=dict)  # {"purpose": Markdown, …}, see services/cards.py
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
        IMPORT = "import", _("Import")  # with a task and classes that somebody declared
        JOB = "job", _("Outputs of a job")  # chosen by hand
        CONVERTED = "convert", _("Conversion")  # of another version of the model
        FILES = "files", _("Own files")
        COMPOSED = "compose", _("Composed")  # of other versions

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
    parent = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="children")  # fine-tuned
    parent_label = models.CharField(max_length=220, blank=True)  # OWNER/NAME v2, also after it is gone
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
        """Whether its answers can be understood: somebody described it."""
        return self.task in TASKS

    @property
    def is_archived(self) -> bool:
        return self.stage == Stage.ARCHIVED


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
    is_scripted = models.BooleanField(default=False, editable=False)  # `script` judged it, not ours
    chosen_threshold = models.FloatField(null=True, editable=False)  # goes before the best F1; services/calibration.py

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
    # on the way to another model, see services/swapping.py
    next_version = models.ForeignKey(ModelVersion, models.SET_NULL, null=True, related_name="+")
    next_job = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="+")  # answers beside, then instead
    old_job = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="+")  # finishes what it is at
    swapped_at = models.DateTimeField(null=True)
    # how many servers it has, see scaling/
    asked_at = models.DateTimeField(null=True)  # the last request, to some seconds
    asleep_at = models.DateTimeField(null=True)  # nobody asked, so it has no server; the next request starts one
    scaling_message = MessageField()  # why it has fewer servers than it needs
    sharing_message = MessageField()  # why it left the process that it shared, see sharing/
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
        return self.asleep_at is None and self.job is not None and not self.job.is_final

    @property
    def is_ending(self) -> bool:
        """Whether a stop of its first server was requested."""
        return self.job is not None and (self.job.state == JobState.STOPPING or self.job.desired == "stop")

    @property
    def answers(self) -> bool:
        """Whether the running attempt has answered."""
        job = self.job
        return job is not None and job.state == JobState.RUNNING and self.ready_attempt == job.attempt_number

    @property
    def state(self) -> str:
        """stopped, asleep, queued, assigned, starting, ready, paused, stopping, failed, lost."""
        if self.asleep_at is not None:
            return "asleep"
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


class ModelAlias(models.Model):
    """A name that stands for one version of a model and can be moved to another: champion."""

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
    """A group whose models are approved by another person than the one who made the version."""

    group = models.OneToOneField(UserGroup, models.CASCADE, related_name="model_approval")
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")

    def __str__(self) -> str:
        return str(self.group)


class PromotionRule(models.Model):
    """What an evaluation must show for its version to get an alias or a stage. Rules never change."""

    model = models.ForeignKey(Model, models.CASCADE, related_name="rules")
    metric = models.CharField(max_length=50)
    at_least = models.BooleanField(default=True)  # False: at most, as for losses
    bound = models.FloatField()
    version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, related_name="promotion_rules")
    version_label = models.CharField(max_length=80)
    split = models.CharField(max_length=10, blank=True)  # of the evaluation, exactly
    better_than = models.CharField(max_length=50, blank=True)  # an alias; "": none
    gives_alias = models.CharField(max_length=50, blank=True)
    gives_stage = models.CharField(max_length=9, choices=Stage, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)

    objects = PromotionRuleQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(condition=~Q(gives_alias="") | ~Q(gives_stage=""), name="promotion_gives_something")
        ]

    def __str__(self) -> str:
        return f"{self.metric} {'≥' if self.at_least else '≤'} {self.bound:g}"


class PromotionVerdict(models.Model):
    """What a rule said about one evaluation; there once, so that a rule acts once."""

    rule = models.ForeignKey(PromotionRule, models.CASCADE, related_name="verdicts")
    evaluation = models.ForeignKey(Evaluation, models.CASCADE, related_name="verdicts")
    attempt = models.PositiveIntegerField()
    promoted = models.BooleanField()
    message = MessageField()
    at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["rule", "evaluation", "attempt"], name="promotion_verdict_once")]

    def __str__(self) -> str:
        return str(self.message)


class ModelTask(models.Model):
    """A job about a model: measure it, count what it learned from, read an archive, or try one; `job` runs it."""

    class Act(models.TextChoices):
        MEASURE = "measure", _("Measure the speed")
        CONVERT = "convert", _("Read a torch archive")
        BASELINE = "baseline", _("Count the training images")
        TRY = "try", _("Try on pictures")
        IMPORT = "import", _("Import model files")
        TORCH = "torch", _("Export for torch")

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
