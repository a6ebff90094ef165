"""`/api/v1/jobs/{id}/{log,log/raw,metrics}/`: what a job prints and measures."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.permissions import Action
from aiplatform.lib import downloads, queries
from aiplatform.lib.api import NumberedViewSet
from workers.jobs.api.serializers import JobOut
from workers.models import Job
from workers.output import logs, metrics


class JobOutputViewSet(NumberedViewSet):
    """Log and curves of the jobs that the caller may see."""

    needs = {"log": Action.JOBS_VIEW, "raw_log": Action.JOBS_VIEW, "metrics": Action.JOBS_VIEW}
    asks = {
        "log": ("offset", "limit", "tail", "before", "attempt"),
        "raw_log": ("attempt",),
        "metrics": ("key", "keys", "max_points", "attempt"),
    }
    serializer_class = JobOut
    queryset = Job.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        return Job.objects.visible_to(user)

    @action(detail=True, url_path="log")
    def log(self, request: Request, pk: str) -> Response:
        """A piece of the log: {"text", "offset", "next_offset", "size", "ended", "attempt"}.

        `offset` is bytes; `limit` at most 64 KiB; `tail=N` begins at the first line within the last N bytes,
        `before=N` gives whole lines that end there; `attempt` is the newest unless given.
        """
        job = self.get_object()
        given = queries.given(request)
        piece = logs.piece(
            job,
            attempt=_attempt(job, given),
            offset=queries.whole(given, "offset", 0) or 0,
            limit=_limit(request),
            tail=queries.whole(given, "tail"),
            before=queries.whole(given, "before"),
        )
        return Response(asdict(piece), headers={"Cache-Control": "private, no-store"})

    @action(detail=True, url_path="log/raw")
    def raw_log(self, request: Request, pk: str) -> HttpResponseBase:
        """The whole log as a file; `Range` is honoured."""
        job = self.get_object()
        number = _attempt(job, queries.given(request)) or job.attempt_number
        try:
            descriptor = logs.open_whole(job, number)
        except FileNotFoundError:
            raise Http404 from None
        return downloads.send_file(request._request, descriptor, f"job-{job.pk}-{number}.txt")

    @action(detail=True)
    def metrics(self, request: Request, pk: str) -> Response:
        """Curves: {"keys", "series": {key: [[step, value]]}, "times": {key: [unix]}, "newest", "last_id"}.

        `key` or `keys` (comma-separated) choose; `max_points` (2 to 2,000) thins by lowest and highest.
        """
        job = self.get_object()
        given = queries.given(request)
        named = ",".join(filter(None, (given.get("key"), given.get("keys"))))
        keys = [key for key in named.split(",") if key] or None
        most = queries.whole(given, "max_points", metrics.MOST_POINTS) or metrics.MOST_POINTS
        curves = metrics.curves(job, attempt=_attempt(job, given), keys=keys, max_points=most)
        return Response(asdict(curves), headers={"Cache-Control": "private, no-store"})


def _limit(request: Request) -> int:
    limit = queries.whole(request.query_params, "limit", logs.PIECE)
    return logs.PIECE if limit is None else min(limit, logs.PIECE)


def _attempt(job: Job, given: dict[str, str]) -> int | None:
    number = queries.whole(given, "attempt")
    if number and number > job.attempt_number:
        raise Http404
    return number or None
