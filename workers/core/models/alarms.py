"""Alarms: rules as an operator set them, what they found, who is told, and what is kept quiet."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from workers.core.querysets import AlarmQuerySet


class Severity(models.TextChoices):
    INFO = "info", pgettext_lazy("severity", "Note")
    WARNING = "warning", _("Warning")
    CRITICAL = "critical", _("Critical")


class AlarmRule(models.Model):
    """A built-in rule (workers/resources/monitoring/rules.py) as it is set here."""

    key = models.CharField(max_length=30, unique=True, editable=False)
    enabled = models.BooleanField(pgettext_lazy("switch", "on"), default=True)
    severity = models.CharField(_("severity"), max_length=8, choices=Severity, default=Severity.WARNING)
    threshold = models.FloatField(_("threshold"), default=0.0)
    for_s = models.PositiveIntegerField(_("minimum duration (s)"), default=0)
    send = models.BooleanField(_("e-mail and webhooks"), default=True)  # else it shows in the platform only

    objects = AlarmQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.key


class Alarm(models.Model):
    """One rule broken by one subject, from the first sight to the end. Pending until it lasted long enough."""

    rule = models.ForeignKey(AlarmRule, models.CASCADE, related_name="alarms")
    subject = models.CharField(max_length=120)
    severity = models.CharField(max_length=8, choices=Severity)
    value = models.FloatField(default=0.0)  # the newest
    facts = models.JSONField(default=dict)
    seen_at = models.DateTimeField(default=now)  # first sight
    raised_at = models.DateTimeField(null=True, blank=True, db_index=True)  # None: pending
    ended_at = models.DateTimeField(null=True, blank=True)  # None: still so
    told_at = models.DateTimeField(null=True, blank=True)  # None: kept quiet, or pending

    objects = AlarmQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["rule", "subject"], condition=Q(ended_at=None), name="alarm_once")
        ]

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}"


class AlarmAddress(models.Model):
    """Address that alerts are sent to, in addition to the administrators' own notifications."""

    class Channel(models.TextChoices):
        MAIL = "mail", _("Mail")
        WEBHOOK = "webhook", _("Webhook")

    channel = models.CharField(_("method"), max_length=8, choices=Channel, default=Channel.MAIL)
    target = models.CharField(_("address"), max_length=500)
    least = models.CharField(_("from severity"), max_length=8, choices=Severity, default=Severity.WARNING)
    enabled = models.BooleanField(pgettext_lazy("switch", "on"), default=True)
    secret = models.CharField(max_length=64, blank=True, editable=False)  # signs webhooks
    made_at = models.DateTimeField(default=now, editable=False)

    objects = AlarmQuerySet.as_manager()

    class Meta:
        ordering = ["channel", "target"]
        constraints = [models.UniqueConstraint(fields=["channel", "target"], name="alarm_address_once")]

    def __str__(self) -> str:
        return self.target


class AlarmSilence(models.Model):
    """Matching alarms are not sent until `until`; they still show."""

    rule = models.ForeignKey(AlarmRule, models.CASCADE, null=True, blank=True, related_name="silences")
    subject = models.CharField(max_length=120, blank=True)  # empty: all
    until = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    made_at = models.DateTimeField(default=now)

    objects = AlarmQuerySet.as_manager()

    class Meta:
        ordering = ["until"]

    def __str__(self) -> str:
        return f"{self.rule or '*'} {self.subject}"
