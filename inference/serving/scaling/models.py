"""Table of the servers that a service has beside its first; inference/models.py makes it known to Django."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.timezone import now


class ServiceReplica(models.Model):
    """A server beside `Service.job` that answers as that does; there until its job ends."""

    service = models.ForeignKey("inference.Service", models.CASCADE, related_name="replicas")
    version = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="+")
    job = models.OneToOneField("workers.Job", models.CASCADE, related_name="replica")
    ready_attempt = models.PositiveIntegerField(default=0)  # attempt of `job` that was seen to answer
    leaving_at = models.DateTimeField(null=True)  # gets no requests any more, ends what it is at
    created_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["service", "leaving_at"])]

    def __str__(self) -> str:
        return str(self.job)

    @property
    def answers(self) -> bool:
        """Whether its running attempt has answered, and requests may reach it."""
        job: Any = self.job
        return self.leaving_at is None and job.state == "running" and self.ready_attempt == job.attempt_number
