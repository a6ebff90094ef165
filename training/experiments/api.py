"""`runs/` and `run-views/`: the table of runs, what people say of them, and saved views."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, StrictMixin, parse_request
from training.experiments import annotating, comparison, table
from training.experiments.annotating import Change
from training.experiments.comparison_api import FigureOut
from training.experiments.models import Run, View, Visibility

FILTER = OpenApiParameter("filter", str, description="As `params.lr < 0.01 and best(val/accuracy) > 0.9`.")
ARCHIVED = OpenApiParameter("archived", bool, description="Also archived ones.")
SORT = OpenApiParameter("sort", str, description="A column, downwards with - before it.")


class RunOut(OutMixin, serializers.ModelSerializer[Run]):
    """A run: what it was given, and what people say of it."""

    owner = serializers.CharField(source="owner.username")
    name = serializers.SerializerMethodField()
    state = serializers.CharField(source="shown_state")
    job = serializers.IntegerField(source="job_id", allow_null=True)
    training = serializers.SerializerMethodField()
    parent = serializers.IntegerField(source="parent_id", allow_null=True)  # type: ignore[assignment]  # a field, not DRF's own parent
    params = serializers.SerializerMethodField()
    tags = serializers.SerializerMethodField()
    starred = serializers.SerializerMethodField()
    url = serializers.SerializerMethodField()

    class Meta:
        model = Run
        fields = [
            "id", "uid", "name", "state", "owner", "job", "training", "parent", "experiment", "visibility", "archived",
            "starred", "tags", "notes", "params", "created_at", "url",
        ]  # fmt: skip
        read_only_fields = fields

    def get_name(self, run: Run) -> str:
        return str(run)

    def get_training(self, run: Run) -> int | None:
        return run.training.pk if run.training is not None else None

    def get_params(self, run: Run) -> dict[str, Any]:
        return {row.key: row.value for row in run.params.all()}

    def get_tags(self, run: Run) -> dict[str, str]:
        return {row.key: row.value for row in run.tags.all()}

    def get_starred(self, run: Run) -> bool:
        return any(star.user_id == self.context["request"].user.pk for star in run.stars.all())

    def get_url(self, run: Run) -> str:
        return f"/experiments/runs/{run.pk}/"


class RunWithFiguresOut(RunOut):
    """A run with its figures."""

    figures = serializers.SerializerMethodField()

    class Meta(RunOut.Meta):
        fields = [*RunOut.Meta.fields, "figures"]
        read_only_fields = fields

    @extend_schema(responses=FigureOut)
    def get_figures(self, run: Run) -> dict[str, Any]:
        return {key: dataclasses.asdict(own) for key, own in comparison.figures([run])[0].items()}


class ChangeIn(StrictMixin, serializers.Serializer[Any]):
    """Changes of runs; omitted fields stay unchanged."""

    add_tags = serializers.ListField(child=serializers.CharField(max_length=601), required=False, max_length=50)
    drop_tags = serializers.ListField(child=serializers.CharField(max_length=601), required=False, max_length=50)
    star = serializers.BooleanField(required=False)
    archived = serializers.BooleanField(required=False)
    visibility = serializers.ChoiceField(choices=Visibility.choices, required=False)
    notes = serializers.CharField(max_length=annotating.MAX_NOTES_LENGTH, allow_blank=True, required=False)
    experiment = serializers.CharField(max_length=100, allow_blank=True, required=False)


class BulkIn(ChangeIn):
    """The same of many runs."""

    runs = serializers.ListField(
        child=serializers.IntegerField(min_value=1), min_length=1, max_length=annotating.MAX_AT_ONCE
    )


class BulkOut(serializers.Serializer[Any]):
    changed = serializers.IntegerField()


class RowOut(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    job = serializers.IntegerField(allow_null=True)
    training = serializers.IntegerField(allow_null=True)
    starred = serializers.BooleanField()
    archived = serializers.BooleanField()
    editable = serializers.BooleanField()
    visibility = serializers.CharField()


class ColumnOut(serializers.Serializer[Any]):
    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field of the answer, not DRF's own label
    kind = serializers.CharField(help_text="text, number, state, time, duration (seconds) or tags.")
    values = serializers.ListField(child=serializers.JSONField(allow_null=True))


class KnownOut(serializers.Serializer[Any]):
    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field of the answer, not DRF's own label
    runs = serializers.IntegerField()
    differs = serializers.BooleanField()
    values = serializers.IntegerField(help_text="How many different ones, of a parameter.")


class TableOut(serializers.Serializer[Any]):
    total = serializers.IntegerField(help_text="How many runs fit the filter; at most 1,000 are given.")
    runs = RowOut(many=True)
    columns = ColumnOut(many=True)
    known = KnownOut(many=True)


class RunViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Runs that the caller may see: own ones, and those that others show."""

    needs = {
        "list": Action.TRAINING_VIEW,
        "retrieve": Action.TRAINING_VIEW,
        "table": Action.TRAINING_VIEW,
        "partial_update": Action.TRAINING_VIEW,
        "bulk": Action.TRAINING_VIEW,
    }
    asks = {"list": ("filter", "archived"), "table": ("filter", "archived", "column", "sort")}
    asks_many = ("column",)
    serializer_class = RunOut
    queryset = Run.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        listed = self.action == "list"
        rows = table.rows(user, **_table_params(self.request)) if listed else Run.objects.visible_to(user)
        return rows.for_comparison().prefetch_related("tags", "stars").order_by("-pk")

    def get_serializer_class(self) -> Any:
        return RunWithFiguresOut if self.action in ("retrieve", "partial_update") else RunOut

    @extend_schema(parameters=[FILTER, ARCHIVED])
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Runs that a filter describes, the newest first."""
        return super().list(request, *args, **kwargs)

    @extend_schema(request=ChangeIn, responses=RunWithFiguresOut)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        """Say something of a run: tags, notes, a star, whether it is archived, who sees it."""
        run = self.get_object()
        annotating.change(request.user, [run.pk], Change(**parse_request(ChangeIn(data=request.data))))
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(request=BulkIn, responses=BulkOut)
    @action(detail=False, methods=["post"])
    def bulk(self, request: ApiRequest) -> Response:
        """Apply the same change to many runs, or to none if one of them may not be changed."""
        data = parse_request(BulkIn(data=request.data))
        changed = annotating.change(request.user, data.pop("runs"), Change(**data))
        return Response({"changed": len(changed)})

    @extend_schema(
        parameters=[
            FILTER, ARCHIVED, SORT,
            OpenApiParameter("column", str, many=True, description="As state, params.lr, best(val/accuracy), tags.x."),
        ],
        responses=TableOut,
    )  # fmt: skip
    @action(detail=False)
    def table(self, request: ApiRequest) -> Response:
        """Return the table of runs by columns; without `column` the most informative ones."""
        query = request.query_params
        made = table.table(
            request.user, **_table_params(request), columns=query.getlist("column"), sort=query.get("sort", "")
        )
        columns, available = (
            [vars(column) for column in made.columns],
            [vars(known_column) for known_column in made.known],
        )
        return Response({"total": made.total, "runs": made.runs, "columns": columns, "known": available})


class QueryIn(StrictMixin, serializers.Serializer[Any]):
    filter = serializers.CharField(max_length=2000, allow_blank=True, default="")
    columns = serializers.ListField(child=serializers.CharField(max_length=300), default=list, max_length=40)
    sort = serializers.CharField(max_length=301, allow_blank=True, default="")
    group = serializers.ListField(child=serializers.CharField(max_length=300), default=list, max_length=5)
    archived = serializers.BooleanField(default=False)


class ViewIn(StrictMixin, serializers.Serializer[Any]):
    name = serializers.CharField(max_length=60)
    query = QueryIn()
    visibility = serializers.ChoiceField(choices=Visibility.choices, default=Visibility.PRIVATE)


class ViewOut(OutMixin, serializers.ModelSerializer[View]):
    owner = serializers.CharField(source="owner.username")
    query = serializers.JSONField()
    url = serializers.SerializerMethodField()

    class Meta:
        model = View
        fields = ["id", "name", "owner", "visibility", "query", "updated_at", "url"]
        read_only_fields = fields

    def get_url(self, view: View) -> str:
        return f"/experiments/?view={view.pk}"


class RunViewViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Saved views of the run table: own ones, and those that others show."""

    needs = {
        "list": Action.TRAINING_VIEW,
        "retrieve": Action.TRAINING_VIEW,
        "create": Action.TRAINING_VIEW,
        "update": Action.TRAINING_VIEW,
        "destroy": Action.TRAINING_VIEW,
    }
    serializer_class = ViewOut
    queryset = View.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = View.objects.visible_to(user)
        if self.action in ("update", "destroy"):
            rows = rows.editable_by(user)
        return rows.select_related("owner").order_by("pk")

    @extend_schema(request=ViewIn, responses={201: ViewOut})
    def create(self, request: ApiRequest) -> Response:
        """Save a view."""
        made = annotating.save_view(request.user, **parse_request(ViewIn(data=request.data)))
        return Response(ViewOut(made).data, 201)

    @extend_schema(request=ViewIn, responses=ViewOut)
    def update(self, request: ApiRequest, pk: str) -> Response:
        """Replace a view."""
        row = self.get_object()
        data = parse_request(ViewIn(data=request.data))
        return Response(ViewOut(annotating.save_view(row.owner, view=row, **data)).data)

    def destroy(self, request: ApiRequest, pk: str) -> Response:
        """Delete a view; the runs stay."""
        self.get_object().delete()
        return Response(status=204)


def _table_params(request: Request) -> dict[str, Any]:
    params: Mapping[str, str] = request.query_params
    return {
        "text": params.get("filter", ""),
        "archived": queries.read_choice(params, "archived", "true", "false") == "true",
    }
