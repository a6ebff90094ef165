"""Tables of requests that people make to those in charge of a cluster."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from workers.core.models.jobs import Job
from workers.core.querysets import ApprovalQuerySet, TimeRequestQuerySet


class TimeRequest(models.Model):
    """A request for more run time than the cluster allows. It is answered once."""

    class Answer(models.TextChoices):
        OPEN = "open", _("Waiting for approval")
        GRANTED = "granted", _("Granted")
        DENIED = "denied", _("Denied")

    job = models.ForeignKey(Job, models.CASCADE, related_name="time_requests")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    requested_at = models.DateTimeField(default=now)
    span = models.DurationField()  # how much more; what was granted, once it was answered
    reason = models.CharField(max_length=300)
    answer = models.CharField(max_length=8, choices=Answer, default=Answer.OPEN)
    answered_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    answered_at = models.DateTimeField(null=True, blank=True)
    word = models.CharField(max_length=300, blank=True)  # what the one who answered had to say

    objects = TimeRequestQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["job"], condition=Q(answer="open"), name="one_open_time_request"),
        ]

    def __str__(self) -> str:
        return f"{self.span} more for {self.job}"


class Approval(models.Model):
    """Whether a job may start, as an administrator of its cluster decides."""

    class Answer(models.TextChoices):
        OPEN = "open", _("Waiting for approval")
        GRANTED = "granted", _("Approved")
        DENIED = "denied", _("Rejected")

    job = models.OneToOneField(Job, models.CASCADE, related_name="approval")
    requested_at = models.DateTimeField(default=now)
    answer = models.CharField(max_length=8, choices=Answer, default=Answer.OPEN)
    answered_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    answered_at = models.DateTimeField(null=True, blank=True)
    word = models.CharField(max_length=300, blank=True)  # what the one who answered had to say

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"approval of {self.job}"
