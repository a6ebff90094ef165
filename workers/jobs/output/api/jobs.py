"""`/api/v1/jobs/{id}/{log,log/raw,metrics}/`: what a job prints and measures."""

from __future__ import annotations

from dataclasses import asdict

from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib import downloads, queries
from aiplatform.lib.message_field import MessageOut
from aiplatform.objects.viewsets import ObjectBase
from workers.jobs.api.serializers import JobOut
from workers.jobs.output import causes, device_errors, logs, metrics
from workers.jobs.output.api import attempt_scope


class CauseOut(serializers.Serializer):
    message = MessageOut(read_only=True)
    sentence = serializers.CharField(source="message", read_only=True, help_text="`message` in the caller's language.")
    line = serializers.CharField(help_text="The line of the log that says so; may be empty.")


class DeviceErrorOut(serializers.Serializer):
    at = serializers.DateTimeField()
    node = serializers.CharField()
    card = serializers.CharField()
    code = serializers.IntegerField(allow_null=True, help_text="The driver's number of it, such as an Xid.")
    text = serializers.CharField()


class JobOutputViewSet(ObjectBase):
    """Log and curves of the jobs that the caller may see."""

    view_permission = change_permission = Action.JOBS_VIEW
    asks = {
        "log": ("offset", "limit", "tail", "before", "attempt", "rank"),
        "raw_log": ("attempt", "rank"),
        "metrics": ("key", "keys", "max_points", "attempt"),
    }
    serializer_class = JobOut

    @extend_schema(responses=OpenApiTypes.OBJECT)
    @action(detail=True, url_path="log")
    def log(self, request: Request, pk: str) -> Response:
        """A piece of the log: {"text", "offset", "next_offset", "size", "ended", "attempt"}.

        `offset` is bytes; `limit` at most 64 KiB; `tail=N` begins at the first line within the last N bytes,
        `before=N` gives whole lines that end there; `attempt` is the newest unless given, `rank` the first machine.
        """
        job = self.get_object()
        params = queries.read_filters(request)
        piece = logs.piece(
            job,
            attempt=attempt_scope.attempt(job, params),
            offset=queries.read_int(params, "offset", 0) or 0,
            limit=_limit(request),
            tail=queries.read_int(params, "tail"),
            before=queries.read_int(params, "before"),
            rank=attempt_scope.rank(job, params),
        )
        return Response(asdict(piece), headers={"Cache-Control": "private, no-store"})

    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.BINARY})
    @action(detail=True, url_path="log/raw")
    def raw_log(self, request: Request, pk: str) -> HttpResponseBase:
        """The whole log as a file; `Range` is honoured."""
        job = self.get_object()
        number = attempt_scope.attempt(job, queries.read_filters(request)) or job.attempt_number
        try:
            rank = attempt_scope.rank(job, queries.read_filters(request))
            descriptor = logs.open_whole(job, number, rank)
        except FileNotFoundError:
            raise Http404 from None
        return downloads.send_file(
            request._request, descriptor, f"job-{job.pk}-{number}{f'-{rank}' if rank else ''}.txt"
        )

    @extend_schema(responses=CauseOut(many=True))
    @action(detail=True, pagination_class=None)
    def causes(self, request: Request, pk: str) -> Response:
        """Why it probably failed, or is slow, and what may be done; empty where nothing is certain."""
        return Response(CauseOut(causes.list_causes(self.get_object()), many=True).data)

    @extend_schema(responses=DeviceErrorOut(many=True))
    @action(detail=True, url_path="device-errors", pagination_class=None)
    def device_errors(self, request: Request, pk: str) -> Response:
        """What the device logs of its machines say of its cards, newest first; at most 100 lines."""
        return Response(DeviceErrorOut(device_errors.list_errors(self.get_object()), many=True).data)

    @extend_schema(responses=OpenApiTypes.OBJECT)
    @action(detail=True)
    def metrics(self, request: Request, pk: str) -> Response:
        """Curves: {"keys", "series": {key: [[step, value]]}, "times": {key: [unix]}, "newest", "last_id"}.

        `key` or `keys` (comma-separated) choose; `max_points` (2 to 2,000) thins by lowest and highest.
        """
        job = self.get_object()
        params = queries.read_filters(request)
        named = ",".join(filter(None, (params.get("key"), params.get("keys"))))
        keys = [key for key in named.split(",") if key] or None
        max_points = queries.read_int(params, "max_points", metrics.MAX_POINTS) or metrics.MAX_POINTS
        curves = metrics.curves(job, attempt=attempt_scope.attempt(job, params), keys=keys, max_points=max_points)
        return Response(asdict(curves), headers={"Cache-Control": "private, no-store"})


def _limit(request: Request) -> int:
    limit = queries.read_int(request.query_params, "limit", logs.PIECE)
    return logs.PIECE if limit is None else min(limit, logs.PIECE)
