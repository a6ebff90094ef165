"""API of evaluations."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.api import parse_request
from aiplatform.lib.errors import NotFound
from aiplatform.lib.idempotency import once, once_in_parts, store_response
from aiplatform.objects.viewsets import object_action
from inference.evaluation import (
    calibration,
    comparison_api,
    error_datasets,
    evaluations,
    requests,
    result_api,
    results,
    slice_api,
)
from inference.evaluation.filters import EvaluationFilters
from inference.evaluation.jobs.api import ModelJobViewSet
from inference.evaluation.models import Evaluation
from inference.evaluation.presentation import report as reports
from inference.evaluation.serializers import EvaluationIn, EvaluationOut

VIEWS = ("results", "images", "comparison", "comparison_slices", "slices", "calibration", "report")


class EvaluationViewSet(ModelJobViewSet):
    """Evaluations. `?state=` filters (a state, or waiting, running, completed, failed, stopped), `?search=` finds."""

    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    needs = dict.fromkeys(VIEWS, Action.EVALUATIONS_VIEW) | {"annotate": Action.DATASETS_CREATE}
    asks = {
        "images": ("cell", "mistake", "begin"),
        "comparison": ("evaluation", "base"),
        "comparison_slices": ("evaluation", "base", *slice_api.ASKS),
        "slices": slice_api.ASKS,
        "calibration": result_api.ASKS,
    }
    asks_many = ("evaluation",)
    reach = {"annotate": ""}
    serializer_class = EvaluationOut
    filters = EvaluationFilters

    @extend_schema(request=EvaluationIn, responses={201: EvaluationOut})
    @once_in_parts
    def create(self, request: ApiRequest) -> Response:
        """Queue one; with own code (multipart where an archive comes along) that judges instead of ours."""
        serializer = EvaluationIn(data=request.data, context=self.get_serializer_context())
        fields = requests.with_snapshot(request.user, parse_request(serializer, evaluations.check))
        with transaction.atomic():
            evaluation = evaluations.submit(user=request.user, **fields)
            return store_response(request, Response(EvaluationOut(evaluation).data, status=201))

    # before `comparison`, whose name hides that of the module
    @extend_schema(
        operation_id="evaluations_comparison_slices",
        parameters=[*comparison_api.PARAMETERS, *slice_api.PARAMETERS],
        responses=slice_api.SlicesOut,
    )
    @action(detail=False, methods=["get"], pagination_class=None, url_path="comparison/slices")
    def comparison_slices(self, request: ApiRequest) -> Response:
        """Figures of parts of the images of two to six evaluations, with intervals of the differences."""
        return Response(slice_api.compare(request))

    @extend_schema(parameters=comparison_api.PARAMETERS, responses=comparison_api.EvaluationComparisonOut)
    @action(detail=False, methods=["get"], pagination_class=None)
    def comparison(self, request: ApiRequest) -> Response:
        """Two to six evaluations of the same images: figures with intervals, and which differences may be chance."""
        return Response(comparison_api.compare(request))

    @extend_schema(parameters=slice_api.PARAMETERS, responses=slice_api.SlicesOut)
    @action(detail=True, methods=["get"], pagination_class=None)
    def slices(self, request: ApiRequest, pk: str) -> Response:
        """Figures of parts of the images, the worst first, with intervals."""
        return Response(slice_api.of_one(request, int(pk)))

    @extend_schema(parameters=result_api.PARAMETERS, responses=result_api.CalibrationOut)
    @action(detail=True, methods=["get"], pagination_class=None)
    def calibration(self, request: ApiRequest, pk: str) -> Response:
        """Whether scores are what they say, and what mistakes cost by threshold."""
        return Response(result_api.calibration_data(request, self.get_object()))

    @object_action(result_api.ThresholdIn)
    def threshold(self, evaluation: Evaluation, threshold: float | None) -> None:
        """Store a threshold as the best score, the default of services with this version."""
        calibration.choose(evaluation, threshold)

    @extend_schema(request=result_api.AnnotateIn, responses={201: result_api.MendingDatasetOut})
    @action(detail=True, methods=["post"])
    @once
    def annotate(self, request: ApiRequest, pk: str) -> Response:
        """Make a dataset of the images with a mistake, annotated as they are now."""
        evaluation = self.get_object()
        made = error_datasets.annotate(
            evaluation, by=request.user, **parse_request(result_api.AnnotateIn(data=request.data))
        )
        return Response({"dataset": made.pk}, status=201)

    @extend_schema(responses={(200, "text/html"): OpenApiTypes.STR})
    @action(detail=True, methods=["get"], pagination_class=None)
    def report(self, request: ApiRequest, pk: str) -> HttpResponse:
        """All of it as one HTML file that needs nothing else."""
        return reports.answer(self.get_object(), request.user)

    @extend_schema(responses=dict)
    @action(detail=True, methods=["get"])
    def results(self, request: ApiRequest, pk: str) -> Response:
        """All figures, curves and counts by threshold."""
        content = results.load(self.get_object())
        if content is None:
            raise NotFound(_("This evaluation has no results yet."))
        return Response(content)

    @extend_schema(responses=dict)
    @action(detail=True, methods=["get"])
    def images(self, request: ApiRequest, pk: str) -> Response:
        """Evaluated images, worst first: `?cell=0,1` of the confusion matrix, `?begin=`, 100 at a time.

        `?cell=0,` are those that show the class, `?cell=,1` those where it was answered; `?mistake=` those with a
        mistake of a detector of this kind: class, location, both, duplicate, background, missed.
        """
        at = queries.read_int(request.query_params, "begin") or 0
        cell = request.query_params.get("cell", "")
        mistake = request.query_params.get("mistake", "")
        error_datasets.check_kind(mistake)
        results.check_predictions(evaluation := self.get_object())
        rows, more = results.images(evaluation, cell=cell, mistake=mistake, begin=at, count=100)
        return Response({"results": rows, "next": at + 100 if more else None})
