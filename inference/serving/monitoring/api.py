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
    value = serializers.FloatField(allow_null=True, help_text="Population stability index; null with too few pictures.")
    change = serializers.ChoiceField(VERDICTS, source="verdict")
    bins = serializers.ListField(child=serializers.CharField(), help_text="Classes; empty: equal parts of 0..1.")
    before = serializers.ListField(child=serializers.FloatField())
    now = serializers.ListField(child=serializers.FloatField())


class LooksOut(serializers.Serializer):
    """How far the pictures as a whole are from those before, by 22 numbers of each."""

    apart = serializers.FloatField(
        allow_null=True, help_text="Standard deviations by number, at most 3 each; null with too few pictures."
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
        allow_null=True, help_text="Of the mean colour layouts, in standard deviations of single pictures."
    )
    drifts = DriftOut(many=True)
    looks = LooksOut(help_text="The pictures as a whole.")


class MonitoringActions:
    """Routes that the view set of services has beside its own."""

    @extend_schema(request=None, responses=MonitoringOut, parameters=[OpenApiParameter("span", str, enum=list(SPANS))])
    @action(detail=True, methods=["get"])
    def monitoring(self: Any, request: ApiRequest, pk: str) -> Response:
        """What pictures and answers are like, for who may change the service."""
        service: Service = self._own()
        span = request.query_params.get("span", "day")
        span = span if span in SPANS else "day"
        seen = results.of(service, span)
        drifts = [{**vars(one), "verdict": one.verdict} for one in seen.drifts]
        looks = {**vars(seen.looks), "change": seen.looks.verdict, "shares": dict(seen.looks.shares)}
        return Response(MonitoringOut({**vars(seen), "span": span, "drifts": drifts, "looks": looks}).data)
