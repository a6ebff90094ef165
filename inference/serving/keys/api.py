"""API of the keys of services, below /services/<id>/."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.http import ApiRequest
from aiplatform.lib import ids
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from inference.serving.keys import keys
from inference.serving.keys.models import ServiceKey


class ServiceKeyOut(OutMixin, serializers.ModelSerializer):
    """A key of a service; only the response that creates it contains `secret`."""

    opens = serializers.BooleanField(read_only=True, help_text="False once it was revoked or has expired.")
    secret = serializers.SerializerMethodField()

    class Meta:
        model = ServiceKey
        fields = [
            "id", "name", "prefix", "secret", "per_minute", "opens", "expires_at", "revoked_at", "last_used_at",
            "created_at",
        ]  # fmt: skip

    def get_secret(self, key: ServiceKey) -> str:
        secret: str = self.context.get("secret", "")
        return secret


class ServiceKeyIn(StrictMixin, serializers.Serializer):
    """Whom a key is for, how often they may ask, and how long it is good for."""

    name = serializers.CharField(max_length=keys.MAX_NAME)
    per_minute = serializers.IntegerField(
        min_value=1, max_value=keys.MAX_PER_MINUTE, required=False, allow_null=True, default=None
    )
    days = serializers.IntegerField(
        min_value=1, max_value=keys.MAX_DURATION.days, required=False, allow_null=True, default=None
    )


class KeyActions:
    """Additional routes of the view set of services."""

    @extend_schema(methods=["GET"], request=None, responses=ServiceKeyOut(many=True))
    @extend_schema(methods=["POST"], request=ServiceKeyIn, responses={201: ServiceKeyOut})
    @action(detail=True, methods=["get", "post"], pagination_class=None)
    def keys(self: Any, request: ApiRequest, pk: str) -> Response:
        """The keys of a service, the newest first, also revoked and expired ones; POST creates one."""
        service = self.own()
        if request.method == "GET":
            rows = service.keys.all()[:500]
            return Response(ServiceKeyOut(rows, many=True, context=self.get_serializer_context()).data)
        serializer = ServiceKeyIn(data=request.data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        fields = dict(serializer.validated_data)
        days = fields.pop("days")
        expires_in = timedelta(days=days) if days else None
        key, secret = keys.issue(service=service, by=request.user, expires_in=expires_in, **fields)
        out = ServiceKeyOut(key, context={**self.get_serializer_context(), "secret": secret})
        return Response(out.data, status=201, headers={"Cache-Control": "no-store"})

    @extend_schema(
        request=None, responses={204: None}, parameters=[OpenApiParameter("key", int, OpenApiParameter.PATH)]
    )
    @action(detail=True, methods=["delete"], url_path=r"keys/(?P<key>[0-9]+)")
    def revoke_key(self: Any, request: ApiRequest, pk: str, key: str) -> Response:
        """End a key; what it was used for stays counted."""
        row = get_object_or_404(self.own().keys.filter(revoked_at=None), pk=ids.number(key) or 0)
        keys.revoke(key=row, by=request.user)
        return Response(status=204)
