"""`/api/v1/time-requests/`: more run time, asked for and answered."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib import queries
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, StrictMixin
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


class TimeRequestViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Requests for more run time: about the caller's own jobs, and those the caller may answer."""

    needs = {"list": Action.JOBS_VIEW, "retrieve": Action.JOBS_VIEW, "answer": Action.CLUSTER_ADMINISTER}
    asks = {"list": ("answer", "cluster", "job")}
    serializer_class = TimeRequestOut
    queryset = TimeRequest.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = TimeRequest.objects.visible_to(user).select_related("job__owner", "job__cluster", "answered_by")
        if self.action == "answer":
            rows = rows.answerable_by(user)
        if self.action == "list":
            params = queries.read_filters(self.request)
            if "answer" in params:
                rows = rows.filter(answer=params["answer"])
            if "cluster" in params:
                rows = rows.filter(job__cluster=queries.read_int(params, "cluster"))
            if "job" in params:
                rows = rows.filter(job=queries.read_int(params, "job"))
        return rows

    @extend_schema(request=AnswerIn, responses=TimeRequestOut)
    @action(detail=True, methods=["post"])
    def answer(self, request: Request, pk: str) -> Response:
        """Grant or deny. What is granted counts at once, also for a job that runs."""
        user: Any = request.user
        row = self.get_object()
        sent = AnswerIn(data=request.data)
        sent.is_valid(raise_exception=True)
        answered = more_time.answer(row, by=user, **sent.validated_data)
        return Response(TimeRequestOut(answered).data)
