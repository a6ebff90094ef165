"""Tables of pipelines: what was drawn, what ran, what people answered. The rows are all the memory there is."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.message_field import MessageField
from aiplatform.lib.titles import TITLE
from inference.pipelines import querysets
from inference.pipelines.advance import FINAL, STEP_ITEM
from workers.core.models import Job

MAX_STEP_LENGTH = 163  # four names of 40 characters, "/" between them


class Pipeline(models.Model):
    """Steps on data and models that are run repeatedly. Its versions hold the specification."""

    class Visibility(models.TextChoices):
        PRIVATE = "private", _("Private")
        GROUP = "group", _("My groups")
        PUBLIC = "public", _("Public")

    name = models.CharField(_("name"), max_length=80, validators=[TITLE])
    description = models.CharField(_("description"), max_length=500, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="pipelines")
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    layout = models.JSONField(default=dict)  # {"train": [x, y]}: positions of its steps; not part of a version
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = querysets.PipelineQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="pipeline_name_once_per_owner")]

    def __str__(self) -> str:
        return self.name


class PipelineVersion(models.Model):
    """A specification that never changes."""

    pipeline = models.ForeignKey(Pipeline, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    spec = models.JSONField()  # canonical, see graph.canonical
    sha256 = models.CharField(max_length=64)  # of its meaning
    note = models.CharField(_("changes"), max_length=200, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)

    objects = querysets.PipelineVersionQuerySet.as_manager()

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["pipeline", "number"], name="pipeline_version_number_once"),
        ]

    def __str__(self) -> str:
        return f"{self.pipeline} v{self.number}"


class PipelineDraft(models.Model):
    """What one person has drawn and not saved as a version yet."""

    pipeline = models.ForeignKey(Pipeline, models.CASCADE, related_name="drafts")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    revision = models.PositiveIntegerField(default=1)  # a writer names the one it knows
    base = models.PositiveIntegerField(default=0)  # number of the version that it began with
    spec = models.JSONField()  # may be incomplete
    layout = models.JSONField(default=dict)
    changed_at = models.DateTimeField(default=now)

    objects = querysets.PipelineDraftQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pipeline", "person"], name="pipeline_draft_once_per_person")]

    def __str__(self) -> str:
        return f"{self.pipeline} · {self.person}"


class PipelineRun(models.Model):
    """One run of a version, as its owner. Its step rows say how far it is."""

    class State(models.TextChoices):
        RUNNING = "running", _("Running")
        OK = "ok", _("Completed")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    pipeline = models.ForeignKey(Pipeline, models.CASCADE, related_name="runs")
    version = models.ForeignKey(PipelineVersion, models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="pipeline_runs")
    state = models.CharField(max_length=9, choices=State, default=State.RUNNING, db_index=True)
    message = MessageField()  # what it ended with
    spec = models.JSONField()  # what it runs: the version's, sub-pipelines put in their places
    parameters = models.JSONField(default=dict)  # all of them, with the values of this run
    trigger = models.JSONField(default=dict)  # {"by": "manual" | "cron" | …, …}
    # wishes
    cancel = models.BooleanField(default=False)
    skip = models.JSONField(default=list)  # steps
    limit = models.PositiveIntegerField(_("immediately"), default=16)
    fail_fast = models.BooleanField(_("stop at the first failure"), default=False)
    use_cache = models.BooleanField(_("reuse earlier results"), default=True)

    is_due = models.BooleanField(default=True)  # something may have to be begun: set with each change, see loop.py
    revision = models.PositiveIntegerField(default=0)  # rises with each change that a page shows
    created_at = models.DateTimeField(default=now)
    ended_at = models.DateTimeField(null=True, blank=True)
    idle_s = models.FloatField(default=0.0)  # between ends and retries

    objects = querysets.PipelineRunQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["pipeline", "number"], name="pipeline_run_number_once")]
        indexes = [models.Index(fields=["id"], condition=Q(state="running", is_due=True), name="pipeline_run_due")]

    def __str__(self) -> str:
        return f"{self.pipeline} #{self.number}"

    @property
    def is_over(self) -> bool:
        return self.state != self.State.RUNNING


class StepRun(models.Model):
    """One attempt of a step of a run, or of one of its items."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        ASKING = "asking", _("Asks users for approval")
        STARTED = "started", _("Running")
        OK = "ok", _("Completed")
        CACHED = "cached", _("From an earlier run")
        FAILED = "failed", _("Failed")
        SKIPPED = "skipped", _("Skipped")
        CANCELLED = "cancelled", _("Cancelled")

    run = models.ForeignKey(PipelineRun, models.CASCADE, related_name="step_runs")
    step = models.CharField(max_length=MAX_STEP_LENGTH)
    item = models.IntegerField(default=STEP_ITEM)  # -1: the step itself
    attempt = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    job = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="pipeline_steps")
    kept = models.JSONField(default=dict)  # what its kind has to know again: {"evaluation": 5}
    outputs = models.JSONField(default=dict)  # {"model": {"type": "model", "id": 7, "label": "cells v3"}}
    answer = models.CharField(max_length=40, blank=True)  # the signal that it gave
    message = MessageField()  # reason for its state
    cache_key = models.CharField(max_length=64, blank=True)
    cached_from = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="+")
    look_at = models.DateTimeField(null=True, blank=True)  # when to look again at what has no job
    created_at = models.DateTimeField(default=now)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = querysets.StepRunQuerySet.as_manager()

    class Meta:
        ordering = ["run", "step", "item", "attempt"]
        constraints = [
            models.UniqueConstraint(fields=["run", "step", "item", "attempt"], name="step_run_once"),
            models.UniqueConstraint(
                fields=["run", "step", "item"],
                condition=Q(state__in=["waiting", "asking", "started"]),
                name="step_run_open_once",
            ),
        ]
        indexes = [
            models.Index(fields=["run"], condition=Q(state__in=["started", "asking"]), name="step_run_under_way"),
            models.Index(fields=["cache_key"], condition=Q(state="ok") & ~Q(cache_key=""), name="step_run_cache"),
        ]

    def __str__(self) -> str:
        return f"{self.run} {self.step}"

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def label(self) -> str:
        """What is shown of its state."""
        return gettext("Awaiting approval") if self.state == self.State.ASKING else str(self.get_state_display())


class StepApproval(models.Model):
    """A question to people, put by a step. Each person answers once; the first that counts decides."""

    step_run = models.OneToOneField(StepRun, models.CASCADE, related_name="approval")
    question = models.CharField(max_length=500)
    people = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+")  # who may answer; none: who may edit
    needed = models.PositiveSmallIntegerField(default=1)  # people who have to agree
    expires_at = models.DateTimeField(null=True, blank=True)
    at_expiry = models.CharField(max_length=8, blank=True)  # passed, refused, "": the step fails

    objects = querysets.StepApprovalQuerySet.as_manager()

    def __str__(self) -> str:
        return self.question


class StepApprovalAnswer(models.Model):
    """What one person answered."""

    approval = models.ForeignKey(StepApproval, models.CASCADE, related_name="answers")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    answer = models.CharField(max_length=8)  # passed, refused
    comment = models.CharField(max_length=500, blank=True)
    at = models.DateTimeField(default=now)

    objects = querysets.StepApprovalAnswerQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["approval", "person"], name="approval_answer_once_per_person")]

    def __str__(self) -> str:
        return f"{self.person}: {self.answer}"


class PipelineTrigger(models.Model):
    """What begins runs of a pipeline by itself, as the person who set it up.

    Its runs have that person's rights, so they run nothing that this person has not agreed to: what others save waits.
    """

    class Kind(models.TextChoices):
        CRON = "cron", _("By schedule")
        DATASET = "dataset", _("New version of a dataset")
        DRIFT = "drift", _("Drift of an endpoint")
        ALARM = "alarm", _("Platform alert")
        WEBHOOK = "webhook", _("Webhook")

    class Busy(models.TextChoices):  # while any run of the pipeline is active, regardless of its owner
        SKIP = "skip", _("Skip")
        ALLOW = "allow", _("Run both")
        CANCEL = "cancel", _("Cancel the earlier run")

    class Missed(models.TextChoices):
        LATEST = "latest", _("Catch up the latest only")
        ALL = "all", _("Catch up all")
        NONE = "none", _("Skip all")

    pipeline = models.ForeignKey(Pipeline, models.CASCADE, related_name="triggers")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="pipeline_triggers")
    kind = models.CharField(_("triggers of runs"), max_length=8, choices=Kind)
    is_on = models.BooleanField(_("on"), default=True)
    schedule = models.CharField(_("schedule"), max_length=200, blank=True)  # five fields of cron
    zone = models.CharField(_("time zone"), max_length=64, blank=True)
    missed = models.CharField(_("missed times"), max_length=6, choices=Missed, default=Missed.LATEST)
    dataset = models.ForeignKey("datasets.Dataset", models.CASCADE, null=True, blank=True, related_name="+")
    service = models.ForeignKey("inference.Service", models.CASCADE, null=True, blank=True, related_name="+")
    rule = models.CharField(_("alert rule"), max_length=30, blank=True)  # key of an AlarmRule; "": any
    busy = models.CharField(_("while an earlier run is active"), max_length=6, choices=Busy, default=Busy.SKIP)
    parameters = models.JSONField(default=dict)  # of its runs
    agreed = models.PositiveIntegerField(default=0)  # number of the version that its owner agreed to; 0: none
    secret = models.TextField(blank=True, editable=False)  # of a webhook, see aiplatform.lib.sealed
    older_until = models.DateTimeField(null=True, blank=True)  # an older secret of it holds until then
    seen_at = models.DateTimeField(default=now)  # what came before is no news
    message = MessageField()  # why the newest firing began no run
    created_at = models.DateTimeField(default=now)

    objects = querysets.PipelineTriggerQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.pipeline}: {self.get_kind_display()}"


class Firing(models.Model):
    """One thing that a trigger answers: it begins one run, or none and says why."""

    trigger = models.ForeignKey(PipelineTrigger, models.CASCADE, related_name="firings")
    key = models.CharField(max_length=120)  # due time, version, notice or delivery
    run = models.ForeignKey(PipelineRun, models.SET_NULL, null=True, related_name="+")
    message = MessageField()
    at = models.DateTimeField(default=now)

    objects = querysets.FiringQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["trigger", "key"], name="firing_once")]

    def __str__(self) -> str:
        return self.key


def reference(kind: str, row: Any) -> dict[str, Any]:
    """Return how outputs name a row: type, number, and a label that remains after the row is deleted."""
    return {"type": kind, "id": row.pk, "label": str(row)[:200]}
