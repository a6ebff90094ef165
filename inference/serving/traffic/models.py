"""Tables of the requests of services; inference/models.py makes them known to Django."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.message_field import MessageField
from inference.serving.querysets import ServiceTrialQuerySet


class ServiceTrial(models.Model):
    """Another version beside the one a service answers with, which gets a part of its requests. Open until `outcome`.

    Its server is a job of its own; the one that answers stays untouched, so that going back takes no time.
    """

    class Mode(models.TextChoices):
        CANARY = "canary", _("Canary: any request may reach it")
        STICKY = "ab", _("A/B test: each caller stays with one model")
        SHADOW = "shadow", _("Shadow: it gets copies, nobody gets its answers")

    class Outcome(models.TextChoices):
        OPEN = "", _("Under way")
        PROMOTED = "promoted", _("Promoted")
        ROLLED_BACK = "rolled_back", _("Rolled back")
        HALTED = "halted", _("Halted")

    service = models.ForeignKey("inference.Service", models.CASCADE, related_name="trials")
    version = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="+")
    model_name = models.CharField(max_length=130)  # "cells v2", also after the version is gone
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

    slot = models.CharField(max_length=120, unique=True)  # all that tells rows apart, see counting.py
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
