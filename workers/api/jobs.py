"""`/api/v1/jobs/`: everything that runs or waits, whatever it means."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.permissions import Action
from aiplatform.lib import downloads, queries, search
from aiplatform.lib.api import NumberedViewSet
from aiplatform.lib.errors import Invalid
from workers.api.serializers import EventOut, JobDetailOut, JobOut
from workers.models import Job
from workers.services import job_page, logs, metrics, queue
from workers.states import JobState


class JobViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Jobs of every kind that the caller may see."""

    needs = {
        "list": Action.JOBS_VIEW,
        "retrieve": Action.JOBS_VIEW,
        "log": Action.JOBS_VIEW,
        "raw_log": Action.JOBS_VIEW,
        "metrics": Action.JOBS_VIEW,
        "story": Action.JOBS_VIEW,
        "queue": Action.JOBS_VIEW,
    }
    asks = {
        "queue": ("cluster", "mine"),
        "list": ("state", "kind", "cluster", "search"),
        "log": ("offset", "limit", "tail", "before", "attempt"),
        "raw_log": ("attempt",),
        "metrics": ("key", "keys", "max_points", "attempt"),
    }
    queryset = Job.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        return job_page.with_places(Job.objects.visible_to(user))

    def get_serializer_class(self) -> type[JobOut]:
        return JobOut if self.action == "list" else JobDetailOut

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Newest first. Filters: `state` (also `live`), `kind`, `cluster` (id), `search` (in the name)."""
        given = queries.given(request)
        rows = self.get_queryset()
        if given.get("state") == "live":
            rows = rows.filter(ended_at=None)
        elif "state" in given:
            if given["state"] not in JobState.values:
                raise Invalid(_("There is no state %(name)s.") % {"name": given["state"][:30]})
            rows = rows.filter(state=given["state"])
        if "kind" in given:
            rows = rows.filter(kind=given["kind"])
        if "cluster" in given:
            rows = rows.filter(cluster=queries.whole(given, "cluster"))
        rows = search.having(rows, given.get("search", ""), "name")
        return self.get_paginated_response(self.get_serializer(self.paginate_queryset(rows), many=True).data)

    @action(detail=False, url_path="queue", pagination_class=None, filter_backends=[])
    def queue(self, request: Request) -> Response:
        """The whole queue of the caller's clusters in order: {"waiting": […], "total"}; at most 300 are listed.

        `cluster` (id) takes one of them, `mine=1` only the caller's jobs. Of other people's jobs the size, place
        and owner show, never the name.
        """
        user: Any = request.user
        given = queries.given(request)
        mine = given.get("mine") in {"1", "True"}
        entries, total = queue.waiting(user, cluster=queries.whole(given, "cluster"), mine=mine)
        return Response({"waiting": [_entry(entry) for entry in entries], "total": total})

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

    @action(detail=True)
    def story(self, request: Request, pk: str) -> Response:
        """What happened to the job, newest first."""
        return Response(EventOut(job_page.story(self.get_object()), many=True).data)


def _entry(entry: queue.Entry) -> dict[str, Any]:
    """A waiting job as the API tells it."""
    cards = f"{entry.gpus} GPU" if entry.share == 8 else f"{entry.share}/8 GPU"
    return {
        "position": entry.position,
        "number": entry.number,
        "name": entry.job.name if entry.job else None,
        "kind": entry.kind,
        "owner": entry.owner,
        "cluster": entry.cluster,
        "asks_for": cards if entry.gpus else f"{entry.cpus:g} CPU",
        "priority": entry.priority,
        "urgent": entry.urgent,
        "code": entry.code,
        "sentence": entry.sentence,
        "eta": entry.eta,
        "queued_at": entry.queued_at,
    }


def _limit(request: Request) -> int:
    limit = queries.whole(request.query_params, "limit", logs.PIECE)
    return logs.PIECE if limit is None else min(limit, logs.PIECE)


def _attempt(job: Job, given: dict[str, str]) -> int | None:
    number = queries.whole(given, "attempt")
    if number and number > job.attempt_number:
        raise Http404
    return number or None
