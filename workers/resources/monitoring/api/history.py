"""`/api/v1/history/`: what machines and clusters did, as curves."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib import queries
from aiplatform.lib.api import PlatformAPIView
from aiplatform.lib.errors import Invalid
from workers.core.clock import now
from workers.core.models import Node
from workers.resources.monitoring import history


class CurvesOut(serializers.Serializer):
    """`times` in unix seconds; each series has a value or null per time. `step` is seconds between samples."""

    times = serializers.ListField(child=serializers.IntegerField())
    series = serializers.DictField(child=serializers.ListField(child=serializers.FloatField(allow_null=True)))
    step = serializers.IntegerField()


class HistoryView(PlatformAPIView):
    """Curves of all machines, of one, or of the caller's clusters."""

    needs = Action.CLUSTER_VIEW
    asks = {"get": ("span", "of", "node")}

    @extend_schema(
        parameters=[
            OpenApiParameter("span", str, enum=list(history.SPANS), default="1h"),
            OpenApiParameter("of", str, enum=["machines", "clusters"], default="machines"),
            OpenApiParameter("node", int, description="only this node"),
        ],
        responses=CurvesOut,
    )
    def get(self, request: Request) -> Response:
        user: Any = request.user
        params = request.query_params
        span, of = params.get("span", "1h"), params.get("of", "machines")
        if of == "clusters":
            curves = history.cluster_curves(user, span=span, moment=now())
        elif of == "machines":
            node = queries.read_int(params, "node")
            if node is not None and not Node.objects.visible_to(user).filter(pk=node).exists():
                raise Http404
            curves = history.curves(user, span=span, moment=now(), node=node)
        else:
            raise Invalid(_("No %(name)s found here.") % {"name": of[:30]})
        return Response(asdict(curves), headers={"Cache-Control": "private, no-store"})
