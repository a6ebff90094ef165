"""`/api/v1/time-requests/`: more run time, asked for and answered."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.access.permissions import Action
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from aiplatform.objects.filters import Choice, Number, ObjectFilters
from aiplatform.objects.viewsets import ObjectViewSet, object_action
from workers.core.models import TimeRequest
from workers.jobs import more_time


class TimeRequestOut(OutMixin, serializers.ModelSerializer[TimeRequest]):
    """A request for more run time; `hours` is what was granted once it was answered."""

    job_name = serializers.CharField(source="job.name")
    owner = serializers.CharField(source="job.owner.username")
    cluster = serializers.CharField(source="job.cluster.name")
    hours = serializers.SerializerMethodField()
    answered_by = serializers.CharField(source="answered_by.username", default=None)

    class Meta:
        model = TimeRequest
        fields = (
            "id", "job", "job_name", "owner", "cluster", "hours", "reason", "requested_at", "answer", "answered_by",
            "answered_at", "word",
        )  # fmt: skip

    def get_hours(self, row: TimeRequest) -> float:
        return round(row.span.total_seconds() / 3600, 4)


class MoreTimeIn(StrictMixin, serializers.Serializer[Any]):
    """How much longer, and why."""

    hours = serializers.FloatField(min_value=0.01, max_value=365 * 24)
    reason = serializers.CharField(max_length=300)


class AnswerIn(StrictMixin, serializers.Serializer[Any]):
    """Whether it is granted; `hours` where that differs from what was requested."""

    grant = serializers.BooleanField()
    hours = serializers.FloatField(min_value=0.01, max_value=365 * 24, required=False, allow_null=True, default=None)
    word = serializers.CharField(max_length=300, required=False, allow_blank=True, default="")


class RequestFilters(ObjectFilters):
    answer = Choice("answer", TimeRequest.Answer.choices)
    cluster = Number("job__cluster")
    job = Number("job")


class RequestViewSet(ObjectViewSet):
    """Requests about the caller's own jobs, and those that the caller may answer."""

    view_permission, change_permission = Action.JOBS_VIEW, Action.CLUSTER_ADMINISTER
    filters = RequestFilters
    reach = {"give_answer": "answerable_by"}


class TimeRequestViewSet(RequestViewSet):
    """Requests for more run time: about the caller's own jobs, and those the caller may answer."""

    serializer_class = TimeRequestOut

    @object_action(AnswerIn, url_path="answer", url_name="answer")
    def give_answer(self, row: TimeRequest, **values: Any) -> None:
        """Grant or deny. What is granted counts at once, also for a job that runs."""
        more_time.answer(row, by=self.request.user, **values)
