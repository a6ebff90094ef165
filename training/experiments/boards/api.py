"""`POST /api/v1/jobs/{id}/board/`: TensorBoard on the event files of a job."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.api import NumberedViewSet
from aiplatform.lib.idempotency import once
from training.experiments.boards import services
from workers.core.models import Job
from workers.jobs.api.serializers import JobOut


class BoardViewSet(NumberedViewSet):
    """TensorBoard on the outputs of one's own jobs."""

    needs = {"board": Action.JOBS_SUBMIT}
    serializer_class = JobOut
    queryset = Job.objects.none()

    def get_queryset(self) -> Any:
        return Job.objects.visible_to(self.request.user).select_related("cluster", "owner")

    @extend_schema(request=None, responses={201: JobOut})
    @action(detail=True, methods=["post"])
    @once
    def board(self, request: ApiRequest, pk: str) -> Response:
        """Start it, or answer the one that runs; its port is called `tensorboard`."""
        job = services.show(self.get_object(), by=request.user)
        return Response(JobOut(job, context=self.get_serializer_context()).data, 201)
