"""API of jobs on a model version."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from aiplatform.lib.answers import OutMixin
from aiplatform.objects.viewsets import ObjectViewSet, object_action
from inference.evaluation.jobs.submission import MAX_NAME
from inference.registry.serializers import JobFields
from inference.registry.version_serializers import VersionField
from workers.jobs import actions
from workers.jobs.api.progress_fields import PROGRESS
from workers.jobs.api.resource_request import ResourcesIn

#: The first fields of a job.
JOB_FIELDS = ("id", "name", "owner", "job", "state", "published", "sentence", "wait_sentence", *PROGRESS)


class ModelJobOut(OutMixin, JobFields, serializers.ModelSerializer[Any]):
    """A job on a model version."""

    name = serializers.CharField(source="job.name", read_only=True)
    owner = serializers.CharField(source="job.owner.username", read_only=True)
    model_version: Any = serializers.PrimaryKeyRelatedField(source="version", read_only=True)
    model = serializers.CharField(source="model_label", read_only=True)
    created_at = serializers.DateTimeField(source="job.created_at", read_only=True)
    ended_at = serializers.DateTimeField(source="job.ended_at", read_only=True)


class ModelJobIn(ResourcesIn):
    """A new job on a model version."""

    model_version = VersionField(to_use=True)
    name = serializers.CharField(max_length=MAX_NAME, required=False, default="", allow_blank=True)
    gpus_per_node = serializers.IntegerField(min_value=0, max_value=1, required=False, default=0)


class ModelJobViewSet(ObjectViewSet):
    """Jobs on a model version."""

    forbids_change = True

    @object_action(status=202)
    def stop(self, row: Any) -> None:
        """Request a stop."""
        actions.stop(row.job, by=self.request.user)
