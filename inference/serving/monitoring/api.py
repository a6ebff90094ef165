"""API of what services are shown, below /services/<id>/ and /model-versions/<id>/."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.http import ApiRequest
from inference.registry.drift import VERDICTS
from inference.serving.models import Service
from inference.serving.monitoring import results
from inference.serving.traffic.statistics import SPANS


class DriftOut(serializers.Serializer):
    """One comparison; shares are of both sides, 0..1."""

    name = serializers.CharField()
    value = serializers.FloatField(
        allow_null=True, help_text="Population stability index; null if there are too few images."
    )
    change = serializers.ChoiceField(VERDICTS, source="verdict")
    bins = serializers.ListField(child=serializers.CharField(), help_text="Classes; empty: equal parts of 0..1.")
    before = serializers.ListField(child=serializers.FloatField())
    now = serializers.ListField(child=serializers.FloatField())


class LooksOut(serializers.Serializer):
    """How far the pictures as a whole are from those before, by 22 numbers of each."""

    apart = serializers.FloatField(
        allow_null=True, help_text="Standard deviations by number, at most 3 each; null if there are too few images."
    )
    allowed = serializers.FloatField(
        allow_null=True, help_text="What 1 of 100 equal samples is apart; null where only training images could say."
    )
    change = serializers.ChoiceField(VERDICTS)
    shares = serializers.DictField(child=serializers.FloatField(), help_text="Of the difference, by what it is about.")


class MonitoringOut(serializers.Serializer):
    """What a service was shown in a span, against what its model learned from."""

    span = serializers.ChoiceField(list(SPANS))
    images = serializers.IntegerField()
    against = serializers.ChoiceField(["training", "earlier", ""], help_text="Compared with; empty: nothing.")
    before = serializers.IntegerField(help_text="Images of what it is compared with.")
    data_name = serializers.CharField()
    distance = serializers.FloatField(
        allow_null=True, help_text="Distance of the mean color layouts, in standard deviations of single images."
    )
    drifts = DriftOut(many=True)
    looks = LooksOut(help_text="Whole images.")


class MonitoringActions:
    """Additional routes of the view set of services."""

    @extend_schema(request=None, responses=MonitoringOut, parameters=[OpenApiParameter("span", str, enum=list(SPANS))])
    @action(detail=True, methods=["get"])
    def monitoring(self: Any, request: ApiRequest, pk: str) -> Response:
        """Statistics of images and predictions, for users who may change the service."""
        service: Service = self.own()
        span = request.query_params.get("span", "day")
        span = span if span in SPANS else "day"
        comparison = results.compare(service, span)
        drifts = [{**vars(row), "verdict": row.verdict} for row in comparison.drifts]
        looks = {**vars(comparison.looks), "change": comparison.looks.verdict, "shares": dict(comparison.looks.shares)}
        return Response(MonitoringOut({**vars(comparison), "span": span, "drifts": drifts, "looks": looks}).data)
