"""`run-importance/`: importance of parameters among runs."""

from __future__ import annotations

import dataclasses
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.api import PlatformViewSet
from training.experiments.api import ARCHIVED, FILTER
from training.experiments.models import Run
from training.studies import run_importance


class RunImportanceOut(serializers.Serializer[Any]):
    figure = serializers.CharField()
    direction = serializers.CharField(help_text="minimize or maximize: what is good.")
    runs = serializers.IntegerField(help_text="How many have the figure and all of these parameters.")
    params = serializers.ListField(child=serializers.CharField())
    importance = serializers.DictField(child=serializers.FloatField(), help_text="By parameter; together 1.")


class RunImportanceViewSet(PlatformViewSet):
    """Importance of parameters for a metric among runs that the user can see."""

    needs = {"list": Action.TRAINING_VIEW}
    asks = {"list": ("figure", "filter", "archived")}
    pagination_class = None
    serializer_class = RunImportanceOut
    queryset = Run.objects.none()

    @extend_schema(
        parameters=[
            OpenApiParameter("figure", str, required=True, description="As best(val/accuracy) or last(train/loss)."),
            FILTER, ARCHIVED,
        ],
        responses=RunImportanceOut,
    )  # fmt: skip
    def list(self, request: ApiRequest) -> Response:
        """How much each parameter mattered for a figure (PED-ANOVA); empty while too few runs say so."""
        filters = queries.read_filters(request)
        result = run_importance.of_runs(
            request.user,
            figure=filters.get("figure", ""),
            text=filters.get("filter", ""),
            archived=queries.read_choice(filters, "archived", "true", "false") == "true",
        )
        return Response(dataclasses.asdict(result))
