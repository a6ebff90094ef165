"""Tables of published ports: what of a job is open to browsers, who is in, and when somebody last asked."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.models import ApiToken, User
from workers.access.proxy.querysets import PortQuerySet
from workers.core.models import Job

NAME_PATTERN = r"^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?\Z"
NAME = RegexValidator(NAME_PATTERN, _("Lowercase letters, digits and - only."))


class PublishedPort(models.Model):
    """A port or a socket of a job that browsers may reach. It is open to the job's owner and whom it is shared with."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="published_ports")
    name = models.CharField(_("name"), max_length=30, validators=[NAME])
    port = models.PositiveIntegerField(_("port"), null=True, blank=True)  # on the job's own loopback
    socket = models.CharField(max_length=100, blank=True, editable=False)  # of its sandbox, in place of a port
    path = models.CharField(max_length=200, blank=True, editable=False)  # where opening leads, below the port
    keeps_path = models.BooleanField(default=False, editable=False)  # the job's server knows the path it stands under
    secret = models.TextField(blank=True, editable=False)  # what its server asks for, see aiplatform.lib.sealed
    cookie_names = models.JSONField(default=list, editable=False)  # which its server set; only these go back to it
    by_platform = models.BooleanField(default=False, editable=False)  # comes with the kind of job
    published_at = models.DateTimeField(default=now, editable=False)

    objects = PortQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["job", "name"], name="port_name_once_per_job"),
            models.UniqueConstraint(fields=["job", "port"], name="port_once_per_job"),
            models.CheckConstraint(
                condition=Q(port__isnull=False, socket="") | (Q(port=None) & ~Q(socket="")), name="port_or_socket"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def owner(self) -> User:
        return self.job.owner


class Admission(models.Model):
    """A browser's way in to one port: a ticket that works once, then the cookie made of it.

    It ends with the sign-in it was made in: the browser's session, or the token.
    """

    port = models.ForeignKey(PublishedPort, models.CASCADE, related_name="admissions")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    session_key = models.CharField(max_length=40, blank=True)
    token = models.ForeignKey(ApiToken, models.CASCADE, null=True, blank=True, related_name="+")
    digest = models.CharField(max_length=64, unique=True)  # sha256 of the ticket, then of the cookie
    entered_at = models.DateTimeField(null=True, blank=True)  # None: still a ticket
    expires_at = models.DateTimeField(db_index=True)


class PortUse(models.Model):
    """When a person last did something with any port of a job."""

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="port_use")
    acted_at = models.DateTimeField()
