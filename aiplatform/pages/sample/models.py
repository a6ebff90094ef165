"""The table of sample projects: which rows were created for a user, and how far the creation is."""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q, QuerySet
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.message_field import MessageField
from datasets.models import Dataset, DatasetVersion
from inference.registry.models import Model, ModelVersion
from inference.serving.models import Service
from workers.core.models import Job


class SampleQuerySet(QuerySet[Any]):
    def visible_to(self, user: User) -> Self:
        """Return the sample project of the user."""
        return self.filter(user=user)


class SampleProject(models.Model):
    """The sample project of one user. The row exists until the project is removed.

    `state` is written by `creation` and `removal` only. A step is done when its reference is set, in the transaction
    that creates the object, so that a killed task neither loses nor repeats a step.
    """

    class State(models.TextChoices):
        CREATING = "creating", _("Being created")
        READY = "ready", _("Ready")
        FAILED = "failed", _("Failed")
        REMOVING = "removing", _("Being removed")
        REMOVAL_FAILED = "removal_failed", _("Not completely removed")

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="sample_project")
    state = models.CharField(max_length=16, choices=State, default=State.CREATING)
    message = MessageField()  # why it failed, or why it cannot be removed
    dataset = models.ForeignKey(Dataset, models.SET_NULL, null=True, related_name="+")
    version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, related_name="+")
    job = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="+")  # of the training
    model = models.ForeignKey(Model, models.SET_NULL, null=True, related_name="+")
    model_version = models.ForeignKey(ModelVersion, models.SET_NULL, null=True, related_name="+")
    service = models.ForeignKey(Service, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)
    # claim of the task that works on it, see aiplatform.lib.claims
    holder = models.CharField(max_length=120, blank=True, editable=False)
    renewed_at = models.DateTimeField(null=True, editable=False)
    epoch = models.PositiveIntegerField(default=0, editable=False)

    objects = SampleQuerySet.as_manager()

    class Meta:
        indexes = [  # the sweep reads only those with work left
            models.Index(fields=["updated_at"], condition=Q(state__in=["creating", "removing"]), name="sample_open"),
        ]

    def __str__(self) -> str:
        return f"sample project of {self.user}"
