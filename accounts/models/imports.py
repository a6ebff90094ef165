"""Imports of accounts from a file."""

from __future__ import annotations

from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.access.querysets import AdministeredQuerySet
from accounts.models.people import User


class PeopleImport(models.Model):
    """One file of accounts to be made, and the result of each row.

    First passwords are not stored: they follow from `nonce`, which is wiped when they have been fetched once.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")

    by = models.ForeignKey(User, models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    rows = models.JSONField(default=list)  # [{username, …, roles: [id], groups: [id], problem}]
    clusters = models.JSONField(default=list)  # ids
    report = models.JSONField(default=list)  # [{made: id | None, said: sentence}] for the rows done so far
    nonce = models.CharField(max_length=64, blank=True)  # "": first passwords were fetched or are too old
    created_at = models.DateTimeField(default=now)
    holder = models.CharField(max_length=100, blank=True)  # the worker that makes the accounts, see lib.claims
    renewed_at = models.DateTimeField(null=True, blank=True)  # its last sign of life
    tries = models.PositiveSmallIntegerField(default=0)  # workers that took it on

    objects = AdministeredQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def made(self) -> int:
        return sum(1 for row in self.report if row["made"])

    @property
    def refused(self) -> int:
        return len(self.report) - self.made
