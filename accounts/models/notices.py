"""Tables of notifications: messages to people, their channels, deliveries by mail and webhook."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.access.querysets import OwnRowsQuerySet
from aiplatform.lib.message_field import MessageField


class Notification(models.Model):
    """A message to one person, once: (user, kind, key) is unique."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notifications")
    kind = models.CharField(max_length=30)  # a name registered in accounts.services.notify
    key = models.CharField(max_length=120)  # identifies the subject: a repeated notice has the same key
    title = MessageField()
    text = MessageField()
    url = models.CharField(max_length=500, blank=True)  # a path of this site, or empty
    created_at = models.DateTimeField(default=now, db_index=True)
    read_at = models.DateTimeField(null=True, blank=True)

    objects = OwnRowsQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["user", "kind", "key"], name="told_once")]
        indexes = [models.Index(fields=["user"], condition=Q(read_at=None), name="notification_unread")]

    def __str__(self) -> str:
        return str(self.title)


class NoticeChoices(models.Model):
    """By which channels a person gets which kinds. Without a row: the kinds' own defaults, by mail only."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notice_choices")
    mail = models.JSONField(default=list)  # names of kinds
    webhook = models.JSONField(default=list)
    webhook_url = models.CharField(_("webhook address"), max_length=500, blank=True)
    webhook_secret = models.CharField(max_length=64, blank=True, editable=False)  # signs what goes there

    objects = OwnRowsQuerySet.as_manager()

    def __str__(self) -> str:
        return f"choices of {self.user}"


class Delivery(models.Model):
    """One mail or webhook call. Only the process that claimed the row sends it."""

    class Channel(models.TextChoices):
        MAIL = "mail", _("Mail")
        WEBHOOK = "webhook", _("Webhook")

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        SENDING = "sending", _("Sending")
        SENT = "sent", _("Sent")
        FAILED = "failed", _("Failed")

    key = models.CharField(max_length=200, unique=True)
    channel = models.CharField(max_length=8, choices=Channel)
    target = models.CharField(max_length=500)  # a mail address or a URL
    secret = models.CharField(max_length=64, blank=True)  # of a webhook; emptied once it is over
    sealed = models.TextField(blank=True, editable=False)  # of a webhook, see services.outbox; emptied once it is over
    kind = models.CharField(max_length=30)
    language = models.CharField(max_length=10, blank=True)  # the receiver's; "": the platform's
    title = MessageField()
    text = MessageField()
    url = models.CharField(max_length=500, blank=True)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(default=now)
    not_before = models.DateTimeField(default=now)
    holder = models.CharField(max_length=100, blank=True)  # who sends it now, see lib.claims
    renewed_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    error = MessageField()

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(fields=["not_before"], condition=Q(state__in=["waiting", "sending"]), name="delivery_due")
        ]

    def __str__(self) -> str:
        return f"{self.channel} to {self.target}: {self.title}"
