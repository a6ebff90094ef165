"""`evaluations/comparison/`: comparison of evaluations of the same images."""

from __future__ import annotations

import dataclasses
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request

from aiplatform.lib import queries
from inference.evaluation import differences, results
from inference.evaluation.models import Evaluation

PARAMETERS = [
    OpenApiParameter("evaluation", int, many=True, required=True, description="Numbers of two to six evaluations."),
    OpenApiParameter("base", int, description="The one the others are measured against; the first unless given."),
]
VERDICTS = "better, worse or no_difference."


class DifferenceOut(serializers.Serializer[Any]):
    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    verdict = serializers.CharField(help_text=VERDICTS)


class ComparedValueOut(serializers.Serializer[Any]):
    evaluation = serializers.IntegerField()
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    difference = DifferenceOut(allow_null=True)


class ComparedFigureOut(serializers.Serializer[Any]):
    key = serializers.CharField()
    lower_is_better = serializers.BooleanField()
    values = ComparedValueOut(many=True)


class McNemarOut(serializers.Serializer[Any]):
    evaluation = serializers.IntegerField()
    both_right = serializers.IntegerField()
    only_base = serializers.IntegerField()
    only_other = serializers.IntegerField()
    both_wrong = serializers.IntegerField()
    p = serializers.FloatField()
    verdict = serializers.CharField(help_text=VERDICTS)


class ComparedEvaluationOut(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    model = serializers.CharField()
    summary = serializers.DictField(child=serializers.FloatField(), help_text="As in the results of the evaluation.")


class EvaluationComparisonOut(serializers.Serializer[Any]):
    base = serializers.IntegerField()
    images = serializers.IntegerField()
    resamples = serializers.IntegerField()
    evaluations = ComparedEvaluationOut(many=True)
    figures = ComparedFigureOut(many=True, help_text="With intervals that hold the truth in 95 of 100 cases.")
    only_told = serializers.ListField(
        child=serializers.CharField(), help_text="Figures of the summaries of which no interval can be had."
    )
    mcnemar = McNemarOut(many=True)


def compare(request: Request) -> dict[str, Any]:
    """Return the comparison that a request specifies."""
    user: Any = request.user
    query = request.query_params
    rows, base = differences.select_evaluations(
        user, queries.read_ints(query, "evaluation"), base=queries.read_int(query, "base")
    )
    comparison = differences.compare(rows, base)
    figures = [
        {
            "key": row.key,
            "lower_is_better": row.lower_is_better,
            "values": [dataclasses.asdict(item) for item in row.values],
        }
        for row in comparison.rows
    ]
    return {
        "base": comparison.base, "images": comparison.images, "resamples": comparison.resamples,
        "evaluations": [_evaluation(row) for row in rows], "figures": figures, "only_told": comparison.only_told,
        "mcnemar": [dataclasses.asdict(item) for item in comparison.mcnemar],
    }  # fmt: skip


def _evaluation(row: Evaluation) -> dict[str, Any]:
    summary = (results.load(row) or {}).get("summary", {})
    numbers = {key: value for key, value in summary.items() if isinstance(value, int | float)}
    return {"id": row.pk, "name": str(row), "model": row.model_label, "summary": numbers}
