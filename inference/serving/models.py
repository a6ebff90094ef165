"""Tables of services, their trials, usage and replicas."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.message_field import MessageField
from aiplatform.lib.titles import TITLE
from inference.registry.models import ModelVersion, Visibility
from inference.serving.querysets import ServiceQuerySet, ServiceTrialQuerySet
from workers.core.models import Job
from workers.core.states import JobState


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
    visibility = models.CharField(_("access"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    model_version = models.ForeignKey(ModelVersion, models.SET_NULL, null=True, related_name="services")
    model_label = models.CharField(max_length=130, blank=True)  # what the model was called, after it was deleted
    job = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="services")
    ready_attempt = models.PositiveIntegerField(default=0)  # attempt of `job` that was seen to answer
    # on the way to another model, see model_swaps.py
    next_version = models.ForeignKey(ModelVersion, models.SET_NULL, null=True, related_name="+")
    next_job = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="+")  # answers beside, then instead
    old_job = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="+")  # finishes what it is at
    swapped_at = models.DateTimeField(null=True)
    # how many servers it has, see scaling/
    asked_at = models.DateTimeField(null=True)  # the last request, to some seconds
    asleep_at = models.DateTimeField(null=True)  # no server as there were no requests; the next one starts it
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


class ServiceTrial(models.Model):
    """A second version of a service that gets a part of its requests. Open until `outcome`.

    Its server is a job of its own; the one that answers stays untouched, so that going back takes no time.
    """

    class Mode(models.TextChoices):
        CANARY = "canary", _("Canary: random requests")
        STICKY = "ab", _("A/B test: each client stays with one model")
        SHADOW = "shadow", _("Shadow: receives copies of requests, its responses are discarded")

    class Outcome(models.TextChoices):
        OPEN = "", _("In progress")
        PROMOTED = "promoted", _("Promoted")
        ROLLED_BACK = "rolled_back", _("Rolled back")
        HALTED = "halted", _("Halted")

    service = models.ForeignKey("inference.Service", models.CASCADE, related_name="trials")
    version = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="+")
    model_name = models.CharField(max_length=130)  # "cells v2", kept after the version is deleted
    beside = models.CharField(max_length=130)  # what the service answered with meanwhile
    job = models.ForeignKey("workers.Job", models.SET_NULL, null=True, related_name="+")
    ready_attempt = models.PositiveIntegerField(default=0)  # attempt of `job` that was seen to answer
    mode = models.CharField(max_length=6, choices=Mode)
    percent = models.PositiveSmallIntegerField()  # of the requests; for a shadow, of those that are copied
    outcome = models.CharField(max_length=11, choices=Outcome, blank=True)
    message = MessageField()  # why it was halted
    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    started_at = models.DateTimeField(default=now)
    ended_at = models.DateTimeField(null=True)

    objects = ServiceTrialQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["service"], condition=Q(outcome=""), name="service_one_open_trial")
        ]

    def __str__(self) -> str:
        return self.model_name

    @property
    def answers(self) -> bool:
        """Whether its running attempt has answered."""
        job: Any = self.job
        return job is not None and job.state == "running" and self.ready_attempt == job.attempt_number


class ServiceUsage(models.Model):
    """Requests of one caller to one version of a service within an hour; several processes add to it."""

    slot = models.CharField(max_length=120, unique=True)  # all that tells rows apart, see traffic/counters.py
    service = models.ForeignKey("inference.Service", models.CASCADE, related_name="usage")
    version = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="+")
    trial = models.ForeignKey(ServiceTrial, models.SET_NULL, null=True, related_name="usage")
    candidate = models.BooleanField(default=False)  # answered by what is tried, not by what the service has
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    key = models.ForeignKey("inference.ServiceKey", models.SET_NULL, null=True, related_name="usage")
    begins_at = models.DateTimeField(db_index=True)
    requests = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)  # answered 500 or above, or broken off
    refused = models.PositiveIntegerField(default=0)  # answered 400 to 499
    bytes_in = models.PositiveBigIntegerField(default=0)
    bytes_out = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(default=0)  # of all requests together
    latencies = models.JSONField(default=dict)  # bucket → requests, see histogram.py
    compared = models.PositiveIntegerField(default=0)  # copies whose answer was held against the one given
    agreement = models.FloatField(default=0)  # sum over those of 0..1

    class Meta:
        ordering = ["-begins_at"]
        indexes = [models.Index(fields=["service", "begins_at"])]

    def __str__(self) -> str:
        return self.slot


class ServiceReplica(models.Model):
    """An additional server of a service, besides `Service.job`; deleted when its job ends."""

    service = models.ForeignKey("inference.Service", models.CASCADE, related_name="replicas")
    version = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="+")
    job = models.OneToOneField("workers.Job", models.CASCADE, related_name="replica")
    ready_attempt = models.PositiveIntegerField(default=0)  # attempt of `job` that was seen to answer
    leaving_at = models.DateTimeField(null=True)  # gets no requests any more, ends what it is at
    created_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["service", "leaving_at"])]

    def __str__(self) -> str:
        return str(self.job)

    @property
    def answers(self) -> bool:
        """Whether its running attempt has answered, and requests may reach it."""
        job: Any = self.job
        return self.leaving_at is None and job.state == "running" and self.ready_attempt == job.attempt_number
