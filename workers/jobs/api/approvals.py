"""`/api/v1/approvals/`: jobs that wait for somebody in charge of their cluster."""

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
from aiplatform.lib.idempotency import once
from workers.core.models import Approval
from workers.jobs import approval


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


class ApprovalViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Approvals of the caller's own jobs, and those that the caller may give."""

    needs = {"list": Action.JOBS_VIEW, "retrieve": Action.JOBS_VIEW, "answer": Action.CLUSTER_ADMINISTER}
    asks = {"list": ("answer", "cluster", "job")}
    serializer_class = ApprovalOut
    queryset = Approval.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = Approval.objects.visible_to(user).select_related("job__owner", "job__cluster", "answered_by")
        if self.action == "answer":
            rows = rows.answerable_by(user)
        if self.action == "list":
            params = queries.read_filters(self.request)
            if "answer" in params:
                rows = rows.filter(answer=queries.read_choice(params, "answer", *Approval.Answer.values))
            for name, column in (("cluster", "job__cluster"), ("job", "job")):
                if name in params:
                    rows = rows.filter(**{column: queries.read_int(params, name)})
        return rows

    @extend_schema(request=ApprovalIn, responses=ApprovalOut)
    @action(detail=True, methods=["post"])
    @once
    def answer(self, request: Request, pk: str) -> Response:
        """Let the job start, or refuse it; a refused one ends as stopped, and its owner is notified."""
        user: Any = request.user
        row = self.get_object()
        serializer = ApprovalIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response(ApprovalOut(approval.answer(row, by=user, **serializer.validated_data)).data)
