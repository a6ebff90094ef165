"""`visualisation/curves`: curves of jobs of any kind on one grid."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.api import PlatformViewSet
from training.experiments import comparison
from training.experiments.comparison_api import GRID, GridOut, curves_wanted, grid_out
from training.experiments.visualisation import runs
from workers.core.models import Job

RUNS = OpenApiParameter("run", int, many=True, required=True, description="Numbers of jobs, at most 12.")


class VisualisationViewSet(PlatformViewSet):
    """Reports of jobs of any kind, side by side."""

    needs = {"curves": Action.JOBS_VIEW}
    asks = {"curves": ("run", "key", "axis", "width", "from", "to")}
    asks_many = ("run", "key")
    pagination_class = None
    serializer_class = GridOut
    queryset = Job.objects.none()

    @extend_schema(parameters=[RUNS, *GRID], responses=GridOut(many=True))
    @action(detail=False)
    def curves(self, request: ApiRequest) -> Response:
        """Curves of all on one grid: lowest, mean and highest value of each stretch, null where a run has no point."""
        user: Any = request.user
        numbers = [run.pk for run in runs.chosen(user, queries.read_ints(request.query_params, "run"))]
        wanted, how = curves_wanted(request)
        return Response([grid_out(key, numbers, comparison.curves_of_jobs(numbers, key, **how)) for key in wanted])
