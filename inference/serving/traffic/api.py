"""API of trials and of the usage of services, below /services/<id>/."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.http import ApiRequest
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from inference.registry.version_serializers import VersionField
from inference.serving.keys.models import ServiceKey
from inference.serving.models import Service, ServiceTrial
from inference.serving.traffic import statistics, trials


class ServiceFiguresOut(serializers.Serializer):
    """Requests together; times in milliseconds, null without an answer."""

    requests = serializers.IntegerField()
    failed = serializers.IntegerField()
    refused = serializers.IntegerField()
    bytes_in = serializers.IntegerField()
    bytes_out = serializers.IntegerField()
    p50_ms = serializers.FloatField(allow_null=True)
    p95_ms = serializers.FloatField(allow_null=True)
    p99_ms = serializers.FloatField(allow_null=True)
    failed_low = serializers.FloatField(help_text="Bounds of the share of failures at 95 %, 0..1.")
    failed_high = serializers.FloatField()
    compared = serializers.IntegerField(help_text="Copied requests whose predictions were compared.")
    agreement = serializers.FloatField(allow_null=True)


class ServiceTrialOut(OutMixin, serializers.ModelSerializer):
    """A trial of another version next to the current one, with the statistics of both."""

    ready = serializers.BooleanField(source="answers", read_only=True)
    message = serializers.CharField(read_only=True, help_text="Why it was halted.")
    tried = serializers.SerializerMethodField()
    beside_figures = serializers.SerializerMethodField()

    class Meta:
        model = ServiceTrial
        fields = [
            "id", "version", "model_name", "beside", "job", "ready", "mode", "percent", "outcome", "message", "tried",
            "beside_figures", "started_at", "ended_at",
        ]  # fmt: skip

    @extend_schema_field(ServiceFiguresOut)
    def get_tried(self, trial: ServiceTrial) -> Any:
        return ServiceFiguresOut(statistics.of_trial(trial)[0]).data

    @extend_schema_field(ServiceFiguresOut)
    def get_beside_figures(self, trial: ServiceTrial) -> Any:
        return ServiceFiguresOut(statistics.of_trial(trial)[1]).data


def label(value: Any) -> str:
    """What a part of the usage is called; keys with what their secret begins with, as names may be given again."""
    return f"{value} ({value.prefix})" if isinstance(value, ServiceKey) else str(value or "")


class ServiceTrialIn(StrictMixin, serializers.Serializer):
    """Which version is tried, how, and on what part of the requests."""

    model_version = VersionField(to_use=True)
    mode = serializers.ChoiceField(ServiceTrial.Mode.choices, required=False, default=ServiceTrial.Mode.CANARY)
    percent = serializers.IntegerField(min_value=1, max_value=100, required=False, default=10)


class ServiceTrialPartIn(StrictMixin, serializers.Serializer):
    """Another part of the requests, in percent."""

    percent = serializers.IntegerField(min_value=1, max_value=100)


class ServiceUsageOut(serializers.Serializer):
    """The usage of a service; only its owner sees other callers."""

    span = serializers.CharField()
    whole = ServiceFiguresOut()
    callers = serializers.DictField(child=ServiceFiguresOut())
    keys = serializers.DictField(child=ServiceFiguresOut(), help_text="By name and beginning of keys.")
    versions = serializers.DictField(child=ServiceFiguresOut())


class TrafficActions:
    """Additional routes of the view set of services."""

    @extend_schema(methods=["GET"], request=None, responses=ServiceTrialOut(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def trials(self: Any, request: ApiRequest, pk: str) -> Response:
        """What was tried, newest first; at most 50."""
        rows = self.get_object().trials.select_related("job")[:50]
        return Response(ServiceTrialOut(rows, many=True, context=self.get_serializer_context()).data)

    @extend_schema(methods=["POST"], request=ServiceTrialIn, responses={202: ServiceTrialOut})
    @extend_schema(methods=["PATCH"], request=ServiceTrialPartIn, responses=ServiceTrialOut)
    @action(detail=True, methods=["post", "patch"])
    def trial(self: Any, request: ApiRequest, pk: str) -> Response:
        """Try another version (POST), or give what is tried another part of the requests (PATCH)."""
        service: Service = self.own()
        starting = request.method == "POST"
        kind = ServiceTrialIn if starting else ServiceTrialPartIn
        serializer = kind(data=request.data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        fields = dict(serializer.validated_data)
        if starting:
            trial = trials.start(service=service, version=fields.pop("model_version"), by=request.user, **fields)
        else:
            trial = trials.change_part(service=service, by=request.user, **fields)
        out = ServiceTrialOut(trial, context=self.get_serializer_context())
        return Response(out.data, status=202 if starting else 200)

    @extend_schema(request=None, responses=ServiceTrialOut)
    @action(detail=True, methods=["post"])
    def promote(self: Any, request: ApiRequest, pk: str) -> Response:
        """Let the version that is tried answer all requests."""
        service: Service = self.own()
        trials.promote(service=service, by=request.user)
        return Response(ServiceTrialOut(service.trials.first(), context=self.get_serializer_context()).data)

    @extend_schema(request=None, responses=ServiceTrialOut)
    @action(detail=True, methods=["post"], url_path="roll-back")
    def roll_back(self: Any, request: ApiRequest, pk: str) -> Response:
        """Give all requests to the version that the service has, and stop the tried one."""
        service: Service = self.own()
        trials.roll_back(service=service, by=request.user)
        return Response(ServiceTrialOut(service.trials.first(), context=self.get_serializer_context()).data)

    @extend_schema(
        request=None, responses=ServiceUsageOut, parameters=[OpenApiParameter("span", str, enum=list(statistics.SPANS))]
    )
    @action(detail=True, methods=["get"])
    def usage(self: Any, request: ApiRequest, pk: str) -> Response:
        """Requests, failures and times within a day, week or month."""
        service: Service = self.get_object()
        span = request.query_params.get("span", "day")
        span = span if span in statistics.SPANS else "day"
        rows = list(statistics.since(service, span).select_related("user", "key", "version__model"))
        if not Service.objects.editable_by(request.user).filter(pk=service.pk).exists():
            rows = [row for row in rows if row.user_id == request.user.pk]
        parts = {
            part: {label(value): totals for value, totals in statistics.by(of, column)}
            for part, column, of in (
                ("callers", "user", [row for row in rows if not row.key_id]),
                ("keys", "key", [row for row in rows if row.key_id]),
                ("versions", "version", rows),
            )
        }
        return Response(ServiceUsageOut({"span": span, "whole": statistics.summarize(rows), **parts}).data)
