"""Tables of SSH: one-time passwords for a job, and who is or was in it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from workers.access.ssh.querysets import SshPasswordQuerySet, SshSessionQuerySet
from workers.core.models import Job


class SshPassword(models.Model):
    """A password that opens one job once, for the person who made it. Only its digest is kept."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="ssh_passwords")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, unique=True)  # sha256; the password has 80 random bits
    made_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True)

    objects = SshPasswordQuerySet.as_manager()

    def __str__(self) -> str:
        return f"SSH password for job {self.job_id}"


class SshSession(models.Model):
    """A connection of a person to a job, from its sign-in to its end; its shells and copies belong to it.

    Its gateway writes `seen_at` as long as it lives, so that nothing stays open behind one that was killed.
    """

    class Way(models.TextChoices):
        KEY = "key", _("key")
        PASSWORD = "password", _("one-time password")

    class End(models.TextChoices):
        LEFT = "left", _("disconnected")
        REQUESTED = "requested", _("ended here")
        WITHDRAWN = "withdrawn", _("access was withdrawn")
        JOB_ENDED = "job_ended", _("the job ended")
        GATEWAY_LOST = "gateway_lost", _("the gateway was stopped")

    job = models.ForeignKey(Job, models.CASCADE, related_name="ssh_sessions")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="ssh_sessions")
    way = models.CharField(max_length=8, choices=Way)
    key_name = models.CharField(max_length=50, blank=True)
    fingerprint = models.CharField(max_length=60, blank=True)  # of the key
    address = models.CharField(max_length=45, blank=True)
    client = models.CharField(max_length=100, blank=True)  # "OpenSSH_9.2p1 Debian-2"
    gateway = models.CharField(max_length=32)  # which process holds it
    began_at = models.DateTimeField(default=now)
    seen_at = models.DateTimeField(default=now)
    heard_at = models.DateTimeField(null=True)  # last byte that somebody typed or a program printed
    end_requested_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    end = models.CharField(max_length=12, choices=End, blank=True)

    objects = SshSessionQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["gateway"], condition=models.Q(ended_at=None), name="ssh_session_open")]

    def __str__(self) -> str:
        return f"SSH session {self.pk} of job {self.job_id}"
