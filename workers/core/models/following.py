"""Tables of jobs that belong together: arrays of jobs, and jobs that follow others."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from workers.core.models.clusters import VirtualCluster
from workers.core.models.jobs import Job
from workers.core.querysets import ArrayQuerySet


class JobArray(models.Model):
    """Many jobs of one request, which differ by `Job.array_index` alone."""

    name = models.CharField(max_length=100)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="job_arrays")
    cluster = models.ForeignKey(VirtualCluster, models.PROTECT, related_name="job_arrays")
    indices = models.CharField(max_length=200)  # as it was written, "0-99%8"
    size = models.PositiveIntegerField()
    at_once = models.PositiveIntegerField(null=True, blank=True)  # most of its jobs at a time; None: no limit
    created_at = models.DateTimeField(default=now)

    objects = ArrayQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.name} [{self.indices}]"


class Dependency(models.Model):
    """A job that starts only after another one."""

    class Needs(models.TextChoices):
        SUCCESS = "success", _("Completed")
        END = "end", _("Ended in any state")

    job = models.ForeignKey(Job, models.CASCADE, related_name="dependencies")
    on = models.ForeignKey(Job, models.CASCADE, related_name="followers")
    needs = models.CharField(max_length=8, choices=Needs, default=Needs.SUCCESS)
    outputs = models.BooleanField(default=False)  # it reads what the other one left, see execution.earlier_outputs

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["job", "on"], name="dependency_once"),
            models.CheckConstraint(condition=~Q(job=F("on")), name="no_job_follows_itself"),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} after {self.on_id}"
