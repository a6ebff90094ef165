"""Tables of reports: Markdown with panels over runs, and every version that was saved."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from training.experiments.models import Visibility
from training.experiments.reports.querysets import ReportQuerySet


class Report(models.Model):
    """A document with panels of runs that each reader sees with their own rights; also holds its newest version."""

    title = models.CharField(_("title"), max_length=150)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="reports")
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    text = models.TextField(_("text"), blank=True)  # Markdown with panels, see reports.panels
    version = models.PositiveIntegerField(default=1)  # +1 at each save; whoever saves says which one they read
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )  # of the newest version
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    objects = ReportQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.title


class ReportVersion(models.Model):
    """The content of a report at one time; never changed afterwards."""

    report = models.ForeignKey(Report, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=150)
    text = models.TextField(blank=True)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    made_at = models.DateTimeField(default=now)
    restores = models.PositiveIntegerField(null=True, blank=True)  # number of the version whose text this is again

    class Meta:
        ordering = ["report", "-number"]
        constraints = [models.UniqueConstraint(fields=["report", "number"], name="report_version_once")]

    def __str__(self) -> str:
        return f"{self.report} v{self.number}"
