"""`/api/v1/jobs/`: everything that runs or waits, whatever it means."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django_filters import Filter
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib import ids, queries
from aiplatform.objects.filters import Choice, Mine, Number, ObjectFilters, Words
from aiplatform.objects.viewsets import ObjectViewSet
from workers.core.states import JobState
from workers.jobs import job_page, queue
from workers.jobs.api.serializers import EventOut, JobDetailOut, JobOut
from workers.jobs.orders import ORDERING


def _in_state(rows: Any, _name: str, state: str) -> Any:
    return rows.filter(ended_at=None) if state == "live" else rows.filter(state=state)


class NameOrNumber(Words):
    """Jobs by words of their name, or by their number."""

    def filter(self, qs: Any, value: str | None) -> Any:
        number = ids.number((value or "").removeprefix("#"))
        named = super().filter(qs, value)
        return named if number is None else qs.filter(Q(pk=number) | Q(pk__in=named.values("pk")))


class JobFilters(ObjectFilters):
    """`live` is every state before the end; `search` finds names and numbers; `mine=1` takes the caller's jobs."""

    state = Choice("state", [("live", "live"), *JobState.choices], method=_in_state)
    kind = Filter("kind")
    cluster = Number("cluster")
    array = Number("array")
    search = NameOrNumber("name")
    mine = Mine()
    orders = ORDERING


class JobViewSet(ObjectViewSet):
    """Jobs of every kind that the caller may see, newest first."""

    view_permission, change_permission = Action.JOBS_VIEW, Action.JOBS_CONTROL
    needs = {"events": Action.JOBS_VIEW, "queue": Action.JOBS_VIEW}
    asks = {"queue": ("cluster", "mine")}
    serializer_class, list_serializer_class = JobDetailOut, JobOut
    filters = JobFilters

    def get_queryset(self) -> Any:
        return job_page.with_places(super().get_queryset())

    @extend_schema(responses=OpenApiTypes.OBJECT)
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

    @extend_schema(responses=EventOut(many=True))
    @action(detail=True, pagination_class=None)
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
