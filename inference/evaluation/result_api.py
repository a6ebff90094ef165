"""Serializers and answers of `evaluations/N/calibration|threshold|annotate/`."""

from __future__ import annotations

import dataclasses
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request

from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from inference.evaluation import calibration, results
from inference.evaluation.models import Evaluation

PARAMETERS = [
    OpenApiParameter("wrong", float, description="What a wrong answer costs; 1 unless given."),
    OpenApiParameter("missed", float, description="What a missed object costs; 1 unless given."),
]
ASKS = ("wrong", "missed")


class BinOut(serializers.Serializer[Any]):
    low = serializers.FloatField()
    high = serializers.FloatField()
    count = serializers.IntegerField()
    score = serializers.FloatField(allow_null=True, help_text="Mean of its answers.")
    right = serializers.FloatField(allow_null=True, help_text="Share of its answers.")


class ReliabilityOut(serializers.Serializer[Any]):
    ece = serializers.FloatField(help_text="Expected calibration error, 0..1.")
    answers = serializers.IntegerField()
    bins = BinOut(many=True)


class CostsOut(serializers.Serializer[Any]):
    threshold = serializers.FloatField(help_text="The cheapest.")
    cost = serializers.FloatField()
    thresholds = serializers.ListField(child=serializers.FloatField())
    costs = serializers.ListField(child=serializers.FloatField())


class CalibrationOut(serializers.Serializer[Any]):
    reliability = ReliabilityOut(allow_null=True, help_text="Of classifiers and detectors.")
    costs = CostsOut(allow_null=True, help_text="Where answers are counted by score.")
    chosen_threshold = serializers.FloatField(allow_null=True)


class ThresholdIn(StrictMixin, serializers.Serializer[Any]):
    threshold = serializers.FloatField(allow_null=True, help_text="null goes back to the one with the best F1.")


class AnnotateIn(StrictMixin, serializers.Serializer[Any]):
    name = serializers.CharField(max_length=25)
    mistake = serializers.CharField(
        max_length=20, required=False, default="", allow_blank=True,
        help_text="class, location, both, duplicate, background or missed.",
    )  # fmt: skip
    cell = serializers.CharField(
        max_length=40,
        required=False,
        default="",
        allow_blank=True,
        help_text="Or of the confusion matrix, as `images` has it.",
    )


class MendingDatasetOut(OutMixin, serializers.Serializer[Any]):
    dataset = serializers.IntegerField(help_text="Imported in the background.")


def calibration_data(request: Request, evaluation: Evaluation) -> dict[str, Any]:
    """Return reliability and costs for the parameters of the request."""
    wrong, missed = (_cost(request, name) for name in ASKS)
    reliability = calibration.for_evaluation(evaluation)
    costs = calibration.costs(results.load(evaluation) or {}, wrong=wrong, missed=missed)
    return {
        "reliability": reliability and dataclasses.asdict(reliability),
        "costs": costs and {"threshold": costs.threshold, "cost": costs.costs[costs.best],
                            "thresholds": costs.thresholds, "costs": costs.costs},
        "chosen_threshold": evaluation.chosen_threshold,
    }  # fmt: skip


def _cost(request: Request, name: str) -> float:
    return calibration.parse_number(request.query_params.get(name) or "1")
