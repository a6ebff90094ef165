"""Tables of studies: what is searched, and each trial with its training. The rows are all the memory there is."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.message_field import MessageField
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from training.programs.models import CodeSnapshot
from training.runs.models import TrainingJob
from training.studies.querysets import StudyQuerySet, TrialQuerySet
from workers.core.states import JobState

WAITING = "waiting"  # shown for a trial whose job is queued; the row says "running" until the outcome is known


class Study(models.Model):
    """A search for parameters: trainings of one request, whose parameters a sampler chooses."""

    class State(models.TextChoices):
        RUNNING = "running", _("Running")
        PAUSED = "paused", _("Paused")
        DONE = "done", _("Completed")
        STOPPED = "stopped", _("Stopped")
        FAILED = "failed", _("Failed")

    class Sampler(models.TextChoices):
        TPE = "tpe", _("TPE: uses earlier results")
        RANDOM = "random", _("Random")
        GRID = "grid", _("Grid: every combination")
        CMAES = "cmaes", _("CMA-ES: for many numeric parameters")
        NSGA2 = "nsga2", _("NSGA-II: for several objectives")

    class Visibility(models.TextChoices):
        PRIVATE = "private", _("Private")
        GROUP = "group", _("My groups")
        PUBLIC = "public", _("Public")

    name = models.CharField(_("name"), max_length=80, validators=[TITLE])
    description = models.CharField(_("description"), max_length=500, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="studies")
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING, db_index=True)
    message = MessageField()  # why it stands where it stands

    request = models.JSONField()  # body of the training API that each trial makes, without what is searched
    preset = models.CharField(_("preset"), max_length=30, blank=True)  # "": own code
    code = models.ForeignKey(CodeSnapshot, models.PROTECT, null=True, blank=True, related_name="studies")
    secrets = models.TextField(blank=True, editable=False)  # of own code, see aiplatform.lib.sealed
    secret_names = models.JSONField(default=list, editable=False)
    version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, blank=True, related_name="studies")
    version_label = models.CharField(max_length=60, blank=True)  # "cells v2", also after it is gone

    space = models.JSONField()  # see space.Range.as_row
    objectives = models.JSONField()  # [{"key", "direction", "take"}], see objectives.Objective
    sampler = models.CharField(_("sampler"), max_length=8, choices=Sampler, default=Sampler.TPE)
    pruner = models.JSONField(default=dict)  # {} or {"name": "median", …}, see objectives.Pruner
    seed = models.PositiveIntegerField(default=0)

    max_trials = models.PositiveIntegerField(default=20)
    at_once = models.PositiveIntegerField(default=2)
    time_limit = models.DurationField(null=True, blank=True)  # from its start; then no new trial begins
    hours_limit = models.FloatField(null=True, blank=True)  # card-hours, of trainings without cards core-hours
    target = models.FloatField(null=True, blank=True)  # of the first objective: good enough

    warm = models.JSONField(default=list)  # trials of earlier studies: [{"params", "state", "values"}]
    enqueued = models.JSONField(default=list)  # parameters that people want tried next, [{…}]
    memory = models.JSONField(default=dict)  # what the sampler keeps of the study as a whole

    created_at = models.DateTimeField(default=now)
    started_at = models.DateTimeField(default=now)  # or when it was last resumed after it had ended
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = StudyQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="study_name_once_per_owner")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_over(self) -> bool:
        return self.state in (self.State.DONE, self.State.STOPPED, self.State.FAILED)

    @property
    def is_own_code(self) -> bool:
        return not self.preset


class Trial(models.Model):
    """One set of parameters and the training that tries it. Its number never changes, whatever happens to the job."""

    class State(models.TextChoices):
        RUNNING = "running", _("Running")
        COMPLETE = "complete", _("Completed")
        PRUNED = "pruned", _("Pruned")
        FAILED = "failed", _("Failed")

    study = models.ForeignKey(Study, models.CASCADE, related_name="trials")
    number = models.PositiveIntegerField()  # from 0
    training = models.OneToOneField(TrainingJob, models.SET_NULL, null=True, related_name="trial")
    params = models.JSONField()  # what the sampler chose
    enqueued = models.BooleanField(default=False)  # a person asked for (some of) them
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING)
    values = models.JSONField(default=list)  # one for each objective, once it is complete; of a pruned one its last
    points = models.JSONField(default=list)  # of the first objective, thinned, once it is told
    attrs = models.JSONField(default=dict)  # what sampler and pruner keep of it
    judged = models.PositiveIntegerField(default=0)  # points that the pruner has seen
    pruned_attempt = models.PositiveIntegerField(default=0)  # attempt of its job that was asked to finish; 0: none
    attempt = models.PositiveIntegerField(default=0)  # attempt of its job that its state says
    message = MessageField()  # why it failed
    created_at = models.DateTimeField(default=now)
    told_at = models.DateTimeField(null=True, blank=True)

    objects = TrialQuerySet.as_manager()

    class Meta:
        ordering = ["study", "number"]
        constraints = [models.UniqueConstraint(fields=["study", "number"], name="trial_number_once")]
        indexes = [models.Index(fields=["study"], condition=Q(state="running"), name="trial_running")]

    def __str__(self) -> str:
        return f"{self.study} #{self.number}"

    @property
    def shown_state(self) -> str:
        """Return its state for users: "waiting" while the job of its training is queued."""
        if self.state == self.State.RUNNING and self.training and self.training.job.state == JobState.QUEUED:
            return WAITING
        return str(self.state)

    @property
    def shown_state_label(self) -> str:
        """Return the word for `shown_state`."""
        return str(_("Waiting") if self.shown_state == WAITING else self.get_state_display())
