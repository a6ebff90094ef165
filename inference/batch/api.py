"""API of predictions."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.db.models import Prefetch
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import ids, queries
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField, parse_request
from aiplatform.lib.errors import Invalid
from aiplatform.lib.idempotency import once_in_parts
from datasets.models import DatasetVersion
from datasets.services.datasets import NAME_MAX
from inference.batch import drafts, exports, predictions, results, sources
from inference.batch.filters import PredictionFilters
from inference.batch.models import PredictedData, Prediction
from inference.evaluation.jobs.api import JOB_FIELDS, ModelJobIn, ModelJobOut, ModelJobViewSet

MAX_LINES = 200  # of one answer of `answers`


class PredictedDataOut(OutMixin, serializers.ModelSerializer):
    """A dataset version made of the answers; `version` is null until its import is done."""

    version: Any = serializers.PrimaryKeyRelatedField(source="intake.version", read_only=True, default=None)
    by = serializers.CharField(source="by.username", read_only=True, default=None)

    class Meta:
        model = PredictedData
        fields = ["id", "dataset", "version", "min_score", "by", "at"]


class PredictionOut(ModelJobOut):
    """A prediction; `summary` is empty until it has ended."""

    version: Any = serializers.PrimaryKeyRelatedField(source="data", read_only=True)
    source: Any = serializers.CharField(source="source_label", read_only=True)
    nodes = serializers.IntegerField(source="job.nodes", read_only=True)
    made = PredictedDataOut(many=True, read_only=True)

    class Meta:
        model = Prediction
        fields = [
            *JOB_FIELDS, "model", "model_version", "task", "version", "source", "split", "is_listed", "total",
            "params", "summary", "nodes", "made", "created_at", "ended_at",
        ]  # fmt: skip
        read_only_fields = fields


class PredictionIn(ModelJobIn):
    """A new prediction: a model, a dataset version or a folder on the server, limits of the answers, resources."""

    version = VisibleField(DatasetVersion, to_use=True, required=False, allow_null=True, default=None)
    server_path = serializers.CharField(
        max_length=500, required=False, default="", allow_blank=True,
        help_text="Instead of a version: an absolute path below a folder that the operator allowed.",
    )  # fmt: skip
    split = serializers.CharField(max_length=10, required=False, default="", allow_blank=True)
    listed = serializers.ListField(
        child=serializers.CharField(max_length=500), required=False, allow_null=True, default=None,
        max_length=sources.MAX_IMAGES, help_text="Names of images in the version or the folder; all if omitted.",
    )  # fmt: skip
    list_file = serializers.FileField(
        required=False, help_text="The same as a .txt file, or as the first column of a .csv file."
    )
    score_threshold = serializers.FloatField(
        required=False, allow_null=True, default=None,
        help_text="Lowest score of an answer; null: the best one of its newest evaluation, else the model's own.",
    )  # fmt: skip
    max_detections = serializers.IntegerField(
        required=False, allow_null=True, default=None, help_text="Maximum predictions per image; null: as in the model."
    )
    batch = serializers.IntegerField(required=False, default=predictions.BATCH)


class PredictionVersionIn(StrictMixin, serializers.Serializer):
    """What becomes of the answers: the next version of the dataset that was answered, or a dataset called `name`."""

    name = serializers.CharField(max_length=NAME_MAX, required=False, default="", allow_blank=True)
    min_score = serializers.FloatField(required=False, default=0.0, help_text="Answers below it are left out.")


class PredictionViewSet(ModelJobViewSet):
    """Predictions. `?state=` filters (a state, or a group such as running or completed), `?search=` finds.

    `answers/?begin=&count=` gives those from a place on; `download/?as=` all of them as csv, coco or jsonl. After
    `stop/` what was answered so far stays.
    """

    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    # and what the dataset requires, see drafts.make
    needs = dict.fromkeys(("results", "answers", "download", "make_version"), Action.EVALUATIONS_VIEW)
    asks = {"answers": ("begin", "count"), "download": ("as",)}
    reach = {"make_version": ""}
    serializer_class = PredictionOut
    filters = PredictionFilters

    def get_queryset(self) -> Any:
        datasets = PredictedData.objects.visible_to(self.request.user).seen_by(self.request.user)
        return super().get_queryset().prefetch_related(Prefetch("made", datasets))

    @extend_schema(request=PredictionIn, responses={201: PredictionOut})
    @once_in_parts
    def create(self, request: ApiRequest) -> Response:
        """Queue a prediction."""
        serializer = PredictionIn(data=request.data, context=self.get_serializer_context())
        fields = parse_request(serializer, predictions.check)
        if file := fields.pop("list_file", None):
            if fields["listed"] is not None:
                raise Invalid(_("Provide the list once: as a file, or as names."), field="listed")
            fields["listed"] = sources.parse_list(file.read(sources.MAX_LIST_BYTES + 1), file.name or "")
        prediction = predictions.submit(user=request.user, **fields)
        return Response(PredictionOut(prediction, context=self.get_serializer_context()).data, status=201)

    @extend_schema(responses=dict)
    @action(detail=True, methods=["get"])
    def results(self, request: ApiRequest, pk: str) -> Response:
        """Counts, and the pictures that were left out with the code of the reason; also while it runs."""
        return Response({"left_out": [], **results.load(self.get_object())})

    @extend_schema(parameters=[OpenApiParameter("begin", int), OpenApiParameter("count", int)], responses=dict)
    @action(detail=True, methods=["get"], pagination_class=None)
    def answers(self, request: ApiRequest, pk: str) -> Response:
        """Return at most `count` (200) predictions from the index `begin` on and the next index; also while it runs."""
        query = queries.read_filters(request)
        begin = min(ids.number(query.get("begin", "")) or 0, 10**8)
        limit = min(max(ids.number(query.get("count", "")) or MAX_LINES, 1), MAX_LINES)
        rows = list(islice(results.lines(self.get_object(), begin=begin), limit + 1))
        following = rows[limit]["n"] if len(rows) > limit else None
        return Response({"answers": rows[:limit], "next": following})

    @extend_schema(
        parameters=[OpenApiParameter("as", str, enum=list(exports.FORMS))],
        responses={(200, "application/octet-stream"): bytes},
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def download(self, request: ApiRequest, pk: str) -> HttpResponseBase:
        """All answers as a file: `csv` has one row for each, `coco` images and annotations, `jsonl` all there is."""
        form = queries.read_choice(queries.read_filters(request), "as", *exports.FORMS) or "csv"
        return exports.send(request._request, self.get_object(), form)

    @extend_schema(request=PredictionVersionIn, responses={202: PredictedDataOut})
    @action(detail=True, methods=["post"], url_path="version")
    def make_version(self, request: ApiRequest, pk: str) -> Response:
        """Begin to make a dataset version whose annotations are the answers, as a first draft."""
        serializer = PredictionVersionIn(data=request.data, context=self.get_serializer_context())
        prediction = self.get_object()
        made = drafts.make(prediction, by=request.user, **parse_request(serializer))
        return Response(PredictedDataOut(made).data, status=202)
