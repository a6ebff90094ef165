"""`training/comparison`: runs beside each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.api import PlatformViewSet
from aiplatform.lib.errors import Invalid
from training.experiments import comparison
from training.experiments.grid import Grid, Numbers
from training.experiments.models import Run

DIGITS = 7  # of float32, beyond which a drawing shows nothing
RUNS = [
    OpenApiParameter("run", int, many=True, description="Numbers of runs; at most 20 with the trainings."),
    OpenApiParameter("training", int, many=True, description="Numbers of trainings."),
]

GRID = [
    OpenApiParameter("key", str, many=True, required=True, description="Names of curves, at most 12."),
    OpenApiParameter("axis", str, enum=comparison.AXES, description="Seconds since a run's first point by time."),
    OpenApiParameter("width", int, description="Stretches of the axis, 2 to 4,000; 1,000 unless given."),
    OpenApiParameter("from", float),
    OpenApiParameter("to", float),
]


class FigureOut(serializers.Serializer):
    count = serializers.IntegerField()
    step = serializers.IntegerField()
    last = serializers.FloatField()
    lowest = serializers.FloatField()
    lowest_step = serializers.IntegerField()
    highest = serializers.FloatField()
    highest_step = serializers.IntegerField()


class ComparedRunOut(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    state = serializers.CharField()
    training = serializers.IntegerField(allow_null=True)
    figures = serializers.DictField(child=FigureOut())


class ComparedRowOut(serializers.Serializer):
    name = serializers.CharField()
    differs = serializers.BooleanField()
    values = serializers.ListField(child=serializers.JSONField(allow_null=True))


class ComparisonOut(serializers.Serializer):
    keys = serializers.ListField(child=serializers.CharField())
    runs = ComparedRunOut(many=True)
    rows = ComparedRowOut(many=True)


class GridLineOut(serializers.Serializer):
    id = serializers.IntegerField()
    points = serializers.IntegerField(help_text="How many the run has in this part of the axis.")
    low = serializers.ListField(child=serializers.FloatField(allow_null=True))
    mean = serializers.ListField(child=serializers.FloatField(allow_null=True))
    high = serializers.ListField(child=serializers.FloatField(allow_null=True))


class GridOut(serializers.Serializer):
    key = serializers.CharField()
    x = serializers.ListField(child=serializers.FloatField())
    runs = GridLineOut(many=True)


class ComparisonViewSet(PlatformViewSet):
    """Up to 20 runs side by side."""

    needs = {"list": Action.TRAINING_VIEW, "curves": Action.TRAINING_VIEW}
    asks = {"list": ("run", "training"), "curves": ("run", "training", "key", "axis", "width", "from", "to")}
    asks_many = ("run", "training", "key")
    pagination_class = None
    serializer_class = ComparisonOut
    queryset = Run.objects.none()

    @extend_schema(parameters=RUNS, responses=ComparisonOut)
    def list(self, request: ApiRequest) -> Response:
        """Their figures, and their facts and parameters, those that differ first."""
        runs = _runs(request)
        figures = comparison.figures(runs)
        compared = [
            {
                "id": run.pk, "name": str(run), "state": run.shown_state,
                "training": run.training and run.training.pk,
                "figures": {key: dataclasses.asdict(figure) for key, figure in own.items()},
            }
            for run, own in zip(runs, figures, strict=True)
        ]  # fmt: skip
        rows = [{"name": row.name, "differs": row.differs, "values": row.values} for row in comparison.rows(runs)]
        return Response({"keys": comparison.keys(figures), "runs": compared, "rows": rows})

    @extend_schema(parameters=[*RUNS, *GRID], responses=GridOut(many=True))
    @action(detail=False)
    def curves(self, request: ApiRequest) -> Response:
        """Curves of all on one grid: lowest, mean and highest value of each stretch, null where a run has no point."""
        runs = _runs(request)
        wanted, how = curves_wanted(request)
        numbers = [run.pk for run in runs]
        return Response([grid_out(key, numbers, comparison.curves(runs, key, **how)) for key in wanted])


def _runs(request: Request) -> Sequence[Run]:
    user: Any = request.user
    query = request.query_params
    return comparison.chosen(user, queries.read_ints(query, "run"), trainings=queries.read_ints(query, "training"))


def curves_wanted(request: Request) -> tuple[list[str], dict[str, Any]]:
    """Return the names given by `key`, and how their curves are placed on one grid."""
    wanted = request.query_params.getlist("key")
    if not 0 < len(wanted) <= comparison.MAX_KEYS:
        message = _("Select 1 to %(limit)s curves as key.") % {"limit": comparison.MAX_KEYS}
        raise Invalid(message, field="key")
    params = {name: request.query_params.get(name, "") for name in ("axis", "width", "from", "to")}
    return wanted, {
        "axis": queries.read_choice(params, "axis", *comparison.AXES) or "step",
        "width": queries.read_int(params, "width", comparison.WIDTH),
        "span": _span(params),
    }


def _span(params: dict[str, str]) -> tuple[float, float] | None:
    if not params["from"] and not params["to"]:
        return None
    try:
        return float(params["from"]), float(params["to"])
    except ValueError:
        raise Invalid(_("from and to must be numbers, the smaller one first."), field="from") from None


def grid_out(key: str, runs: Sequence[int], grid: Grid) -> dict[str, Any]:
    """What `GridOut` says of the curves of runs of these numbers."""
    lines = [
        {"id": run, "points": line.points, "low": _numbers(line.low), "mean": _numbers(line.mean),
         "high": _numbers(line.high)}
        for run, line in zip(runs, grid.lines, strict=True)
    ]  # fmt: skip
    return {"key": key, "x": grid.x.tolist(), "runs": lines}


def _numbers(values: Numbers) -> list[float | None]:
    empty = np.isnan(values)
    return [
        None if nothing else float(f"{v:.{DIGITS}g}")
        for v, nothing in zip(values.tolist(), empty.tolist(), strict=True)
    ]
