"""Imports of accounts from a file."""

from __future__ import annotations

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.access.querysets import AdministeredQuerySet
from accounts.models.people import User


class PeopleImport(models.Model):
    """A file of accounts to create, and the result of each row.

    Initial passwords are not stored: they are derived from `nonce`, which is cleared after they were downloaded once.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")

    by = models.ForeignKey(User, models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)  # of the file
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    rows = models.JSONField(default=list)  # [{username, …, roles: [id], groups: [id], problem}]
    clusters = models.JSONField(default=list)  # ids of the virtual clusters that each account joins
    report = models.JSONField(default=list)  # [{made: user id | None, said: error}] of the rows processed so far
    nonce = models.CharField(max_length=64, blank=True)  # "": passwords were downloaded or have expired
    created_at = models.DateTimeField(default=now)
    holder = models.CharField(max_length=100, blank=True)  # worker that creates the accounts, see lib.claims
    renewed_at = models.DateTimeField(null=True, blank=True)  # last heartbeat of the holder
    tries = models.PositiveSmallIntegerField(default=0)  # how often a worker claimed the import

    objects = AdministeredQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def made(self) -> int:
        """Number of accounts created so far."""
        return sum(1 for row in self.report if row["made"])

    @property
    def refused(self) -> int:
        """Number of rows that were rejected so far."""
        return len(self.report) - self.made
