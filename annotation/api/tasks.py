"""API of tasks and the shapes on them."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.api import KeysetPagination
from aiplatform.lib.problems import problem
from annotation.api import edits
from annotation.api import serializers as wire
from annotation.api.views import DRAW, VIEW, InProject
from annotation.models import ImageTask, Review, Shape
from annotation.services import changes, journal, pictures, review, work


class TaskPages(KeysetPagination):
    page_size = 20
    ordering = ("set", "number")


class TaskViewSet(ListModelMixin, RetrieveModelMixin, InProject):
    needs = {
        "list": VIEW, "retrieve": VIEW, "next": VIEW, "previous": VIEW, "image": VIEW,
        "shapes": VIEW, "changes": VIEW, "edit_shapes": DRAW, "submit": DRAW, "reviews": VIEW, "review": DRAW,
    }  # fmt: skip
    asks = {"list": ("dataset", "state", "label", "from"), "changes": ("since",)}
    model = ImageTask
    serializer_class = wire.TaskOut
    pagination_class = TaskPages

    def get_queryset(self) -> Any:
        rows = super().get_queryset().select_related("asset__version", "set__source")
        if self.action == "list":
            rows = self._filtered(rows)
        return rows

    def _filtered(self, rows: Any) -> Any:
        filters = queries.read_filters(self.request)
        if (dataset := queries.read_int(filters, "dataset")) is not None:
            rows = rows.filter(set=dataset)
        if state := queries.read_choice(filters, "state", *ImageTask.State.values):
            rows = rows.filter(state=state)
        if (first := queries.read_int(filters, "from")) is not None:
            rows = rows.filter(number__gte=first)
        if (label := queries.read_int(filters, "label")) is not None:
            with_label = Shape.objects.visible_to(self.request.user).filter(label=label, deleted=False)
            rows = rows.filter(pk__in=with_label.values("task"))
        return rows

    @extend_schema(
        parameters=[
            OpenApiParameter("dataset", int),
            OpenApiParameter("state", str, enum=ImageTask.State.values),
            OpenApiParameter("label", int, description="Images with objects of this class."),
            OpenApiParameter("from", int, description="Images from this number of their dataset on."),
        ]
    )
    def list(self, request: Request, project_pk: int) -> Response:
        self.project()
        return super().list(request)

    def next(self, request: ApiRequest, project_pk: int, pk: int) -> Response:
        return self._neighbour(1)

    def previous(self, request: ApiRequest, project_pk: int, pk: int) -> Response:
        return self._neighbour(-1)

    def _neighbour(self, step: int) -> Response:
        neighbour = work.neighbour(self.get_object(), step)
        if neighbour is None:
            raise Http404
        return Response(wire.TaskOut(self.get_queryset().get(pk=neighbour.pk)).data)

    @extend_schema(responses={(200, "image/*"): OpenApiTypes.BINARY})
    def image(self, request: ApiRequest, project_pk: int, pk: int) -> HttpResponse:
        return pictures.full(self.get_object())

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def shapes(self, request: ApiRequest, project_pk: int, pk: int) -> HttpResponse:
        """All shapes of the image, and the revisions of deleted ones."""
        return HttpResponse(journal.all_shapes_json(self.get_object()), content_type="application/json")

    @extend_schema(
        parameters=[OpenApiParameter("since", int, description="Revision of the image that is known.")],
        responses=OpenApiTypes.OBJECT,
    )
    def changes(self, request: ApiRequest, project_pk: int, pk: int) -> Response:
        """Shapes stored since a revision of the image, deleted ones too, and the image's state."""
        rev = queries.read_int(queries.read_filters(request), "since", 0) or 0
        return Response(changes.since(self.get_object(), rev))

    @extend_schema(request=edits.EditsIn, responses={200: OpenApiTypes.OBJECT, 409: OpenApiTypes.OBJECT})
    def edit_shapes(self, request: ApiRequest, project_pk: int, pk: int) -> Response:
        """Store edits; 409 when some are based on an older revision, with both versions of each."""
        task: ImageTask = self.get_object()
        review.require_drawing(request.user, task)  # before the body: who may only look hears that, whatever was sent
        try:
            outcome = journal.apply(task=task, edits=edits.read(request.data), by=request.user)
        except journal.BadEdit as refusal:
            body = problem(400, refusal.code, refusal.message, request=request, **refusal.facts)
            return Response(body, status=400, content_type="application/problem+json")
        answer: dict[str, object] = {"rev": outcome.rev, "results": outcome.results}
        if not outcome.conflicts:
            return Response(answer)
        detail = "Some shapes were changed by somebody else meanwhile."
        body = problem(409, "conflict", detail, request=request, **answer)
        return Response(body, status=409, content_type="application/problem+json")

    @extend_schema(request=wire.SubmitIn, responses=wire.TaskOut)
    def submit(self, request: ApiRequest, project_pk: int, pk: int) -> Response:
        task = work.submit(task=self.get_object(), by=request.user, **self.valid(wire.SubmitIn))
        return Response(wire.TaskOut(self.get_queryset().get(pk=task.pk)).data)

    @extend_schema(responses=wire.ReviewOut(many=True))
    def reviews(self, request: ApiRequest, project_pk: int, pk: int) -> Response:
        """All reviews of the image, newest first."""
        rows = Review.objects.visible_to(request.user).filter(task=self.get_object()).select_related("by")
        return Response(wire.ReviewOut(rows, many=True).data)

    @extend_schema(request=wire.ReviewIn, responses=wire.TaskOut)
    def review(self, request: ApiRequest, project_pk: int, pk: int) -> Response:
        """Accept the submitted image, or send it back with a comment."""
        task: ImageTask = self.get_object()
        review.require_judging(request.user, task)
        task = review.judge(task=task, by=request.user, **self.valid(wire.ReviewIn))
        return Response(wire.TaskOut(self.get_queryset().get(pk=task.pk)).data)
