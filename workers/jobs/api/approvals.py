"""`/api/v1/approvals/`: jobs that wait for somebody in charge of their cluster."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from aiplatform.objects.viewsets import object_action
from workers.core.models import Approval
from workers.jobs import approval
from workers.jobs.api.more_time import RequestViewSet


class ApprovalOut(OutMixin, serializers.ModelSerializer[Approval]):
    """A job that waits for an approval, or the answer to it."""

    job_name = serializers.CharField(source="job.name")
    kind = serializers.CharField(source="job.kind")
    owner = serializers.CharField(source="job.owner.username")
    cluster = serializers.CharField(source="job.cluster.name")
    answered_by = serializers.CharField(source="answered_by.username", default=None)

    class Meta:
        model = Approval
        fields = (
            "id", "job", "job_name", "kind", "owner", "cluster", "requested_at", "answer", "answered_by", "answered_at",
            "word",
        )  # fmt: skip


class ApprovalIn(StrictMixin, serializers.Serializer[Any]):
    """Whether the job may start, and a word that its owner reads."""

    grant = serializers.BooleanField()
    word = serializers.CharField(max_length=approval.MAX_REASON_LENGTH, required=False, allow_blank=True, default="")


class ApprovalViewSet(RequestViewSet):
    """Approvals of the caller's own jobs, and those that the caller may give."""

    serializer_class = ApprovalOut

    @object_action(ApprovalIn, once=True, url_path="answer", url_name="answer")
    def give_answer(self, row: Approval, **values: Any) -> None:
        """Let the job start, or refuse it; a refused one ends as stopped, and its owner is notified."""
        approval.answer(row, by=self.request.user, **values)
