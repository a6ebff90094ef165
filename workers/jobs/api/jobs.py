"""`/api/v1/jobs/`: everything that runs or waits, whatever it means."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib import queries, search
from aiplatform.lib.api import NumberedViewSet
from aiplatform.lib.errors import Invalid
from workers.core.models import Job
from workers.core.states import JobState
from workers.jobs import job_page, queue
from workers.jobs.api.serializers import EventOut, JobDetailOut, JobOut
from workers.jobs.orders import ORDERING


class JobViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Jobs of every kind that the caller may see."""

    needs = {
        "list": Action.JOBS_VIEW,
        "retrieve": Action.JOBS_VIEW,
        "events": Action.JOBS_VIEW,
        "queue": Action.JOBS_VIEW,
    }
    asks = {
        "queue": ("cluster", "mine"),
        "list": ("state", "kind", "cluster", "array", "search"),
    }
    orders = ORDERING
    queryset = Job.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        return job_page.with_places(Job.objects.visible_to(user))

    def get_serializer_class(self) -> type[JobOut]:
        return JobOut if self.action == "list" else JobDetailOut

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Newest first. Filters: `state` (also `live`), `kind`, `cluster`, `array` (ids), `search` (in the name)."""
        params = queries.read_filters(request)
        rows = self.get_queryset()
        if params.get("state") == "live":
            rows = rows.filter(ended_at=None)
        elif "state" in params:
            if params["state"] not in JobState.values:
                raise Invalid(_("Unknown state %(name)s.") % {"name": params["state"][:30]})
            rows = rows.filter(state=params["state"])
        if "kind" in params:
            rows = rows.filter(kind=params["kind"])
        if "cluster" in params:
            rows = rows.filter(cluster=queries.read_int(params, "cluster"))
        if "array" in params:
            rows = rows.filter(array=queries.read_int(params, "array"))
        rows = search.filter_by_text(rows, params.get("search", ""), "name")
        return self.get_paginated_response(self.get_serializer(self.paginate_queryset(rows), many=True).data)

    @action(detail=False, url_path="queue", pagination_class=None, filter_backends=[])
    def queue(self, request: Request) -> Response:
        """The whole queue of the caller's clusters in order: {"waiting": […], "total"}; at most 300 are listed.

        `cluster` (id) takes one of them, `mine=1` only the caller's jobs. Of other people's jobs the size, place
        and owner show, never the name.
        """
        user: Any = request.user
        params = queries.read_filters(request)
        mine = params.get("mine") in {"1", "True"}
        entries, total = queue.waiting(user, cluster=queries.read_int(params, "cluster"), mine=mine)
        return Response({"waiting": [_entry(entry) for entry in entries], "total": total})

    @action(detail=True)
    def events(self, request: Request, pk: str) -> Response:
        """What happened to the job, newest first."""
        return Response(EventOut(job_page.events(self.get_object()), many=True).data)


def _entry(entry: queue.Entry) -> dict[str, Any]:
    """A waiting job as the API returns it."""
    cards = f"{entry.gpus} GPU" if entry.share == 8 else f"{entry.share}/8 GPU"
    return {
        "position": entry.position,
        "number": entry.number,
        "name": entry.job.name if entry.job else None,
        "kind": entry.kind,
        "icon": entry.icon,
        "owner": entry.owner.username,
        "cluster": entry.cluster,
        "asks_for": cards if entry.gpus else f"{entry.cpus:g} CPU",
        "priority": entry.priority,
        "urgent": entry.urgent,
        "code": entry.code,
        "sentence": entry.sentence,
        "eta": entry.eta,
        "queued_at": entry.queued_at,
    }
