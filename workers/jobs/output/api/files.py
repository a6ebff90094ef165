"""`/api/v1/jobs/{id}/files/{,content/,zip/}`: what a job left under its outputs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib.api import NumberedViewSet
from aiplatform.lib.downloads import send_file
from aiplatform.lib.zips import send_zip
from workers.core.models import Job
from workers.jobs.output import files

FILE = {(200, "application/octet-stream"): OpenApiTypes.BINARY}
ATTEMPT = OpenApiParameter("attempt", int, description="The newest with outputs unless given.")


class OutputOut(serializers.Serializer):
    path = serializers.CharField()
    size_bytes = serializers.IntegerField()
    changed_at = serializers.DateTimeField()


class JobFilesViewSet(NumberedViewSet):
    """Output files of the jobs that the caller may see."""

    needs = {"files": Action.JOBS_VIEW, "file_content": Action.JOBS_VIEW, "file_zip": Action.JOBS_VIEW}
    asks = {"files": ("attempt",), "file_content": ("path", "attempt"), "file_zip": ("attempt",)}
    serializer_class = OutputOut
    queryset = Job.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        return Job.objects.visible_to(user)

    @extend_schema(responses=OutputOut(many=True), parameters=[ATTEMPT])
    @action(detail=True, pagination_class=None)
    def files(self, request: Request, pk: str) -> Response:
        """At most 5,000 files; `X-More-Files: true` where there are more."""
        job = self.get_object()
        rows, more = files.listed(job, self._attempt(job))
        return Response(OutputOut(rows, many=True).data, headers={"X-More-Files": "true"} if more else {})

    @extend_schema(responses=FILE, parameters=[OpenApiParameter("path", str, required=True), ATTEMPT])
    @action(detail=True, url_path="files/content")
    def file_content(self, request: Request, pk: str) -> Any:
        """One file by its path; `Range` is honoured."""
        job = self.get_object()
        path = request.query_params.get("path", "")
        return send_file(request._request, files.open_output(job, self._attempt(job), path), path.rsplit("/", 1)[-1])

    @extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY}, parameters=[ATTEMPT])
    @action(detail=True, url_path="files/zip")
    def file_zip(self, request: Request, pk: str) -> Any:
        """All files of the attempt; `Range` is honoured."""
        job = self.get_object()
        attempt = self._attempt(job)
        return send_zip(request._request, files.for_zip(job, attempt), f"{job.name}-{attempt}.zip")

    def _attempt(self, job: Job) -> int:
        return files.attempt_of(job, self.request.query_params.get("attempt", ""))
