"""`/api/v1/secrets/`: the caller's secrets by name. Values go in and never come out."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from accounts.models import NamedSecret
from accounts.services import named_secrets
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, StrictMixin, parse_request

_VALUE: dict[str, Any] = {"trim_whitespace": False, "max_length": 2 * named_secrets.MAX_BYTES, "write_only": True}


class SecretOut(OutMixin, serializers.ModelSerializer[NamedSecret]):
    """A secret without its value."""

    class Meta:
        model = NamedSecret
        fields = ["id", "name", "note", "created_at", "changed_at", "used_at"]
        read_only_fields = fields


class SecretIn(StrictMixin, serializers.Serializer[Any]):
    name = serializers.CharField(max_length=64)
    value = serializers.CharField(**_VALUE, help_text="Kept encrypted, never answered.")
    note = serializers.CharField(max_length=200, default="", allow_blank=True)


class SecretChangeIn(StrictMixin, serializers.Serializer[Any]):
    value = serializers.CharField(**_VALUE, required=False, help_text="The new one; left out: it stays.")
    note = serializers.CharField(max_length=200, allow_blank=True, required=False)


class SecretViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """The caller's own secrets. Values cannot be read, and secrets of other users are hidden."""

    needs = dict.fromkeys(("list", "retrieve", "create", "partial_update", "destroy"), Action.SELF_MANAGE)
    serializer_class = SecretOut
    queryset = NamedSecret.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        return NamedSecret.objects.visible_to(user)

    @extend_schema(request=SecretIn, responses={201: SecretOut})
    def create(self, request: ApiRequest) -> Response:
        """Store a value under a new name."""
        fields = parse_request(SecretIn(data=request.data))
        row = named_secrets.add(user=request.user, **fields)
        return Response(SecretOut(row, context=self.get_serializer_context()).data, status=201)

    @extend_schema(request=SecretChangeIn, responses=SecretOut)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        """Replace its value or its note. What runs already goes on with the old value."""
        row: NamedSecret = self.get_object()
        row = named_secrets.change(row, by=request.user, **parse_request(SecretChangeIn(data=request.data)))
        return Response(SecretOut(row, context=self.get_serializer_context()).data)

    def destroy(self, request: ApiRequest, pk: str) -> Response:
        """Forget it. What names it fails from now on."""
        named_secrets.delete(self.get_object(), by=request.user)
        return Response(status=204)
