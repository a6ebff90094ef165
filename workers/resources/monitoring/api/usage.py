"""`/api/v1/usage/`: who used how much."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib.api import PlatformAPIView
from workers.resources.monitoring import usage


class UsageRow(serializers.Serializer):
    name = serializers.CharField()
    gpu_hours = serializers.FloatField()
    cpu_hours = serializers.FloatField()
    jobs = serializers.IntegerField()
    wait_p50_s = serializers.FloatField(allow_null=True)
    wait_p95_s = serializers.FloatField(allow_null=True)


class UsageOut(serializers.Serializer):
    """Rows by card-hours; `begin` and `end` in UTC."""

    begin = serializers.DateTimeField()
    end = serializers.DateTimeField()
    by = serializers.CharField()
    rows = UsageRow(many=True)
    total = UsageRow()


class UsageView(PlatformAPIView):
    """Use of whole days by person, group or cluster; of the caller's own jobs, for operators of all."""

    needs = Action.JOBS_VIEW
    asks = {"get": ("by", "from", "until")}

    @extend_schema(
        parameters=[
            OpenApiParameter("by", str, enum=list(usage.BY), default="user"),
            OpenApiParameter("from", str, description="first day, 2026-03-01; 30 days before the last one"),
            OpenApiParameter("until", str, description="last day; today"),
        ],
        responses=UsageOut,
    )
    def get(self, request: Request) -> Response:
        user: Any = request.user
        params = request.query_params
        begin, end = usage.span(params.get("from", ""), params.get("until", ""))
        report = usage.report(user, begin=begin, end=end, by=params.get("by", "user"))
        return Response(UsageOut(asdict(report)).data)
