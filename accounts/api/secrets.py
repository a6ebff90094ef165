"""`/api/v1/secrets/`: the caller's secrets by name. Values go in and never come out."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.access.permissions import Action
from accounts.models import NamedSecret
from accounts.services import named_secrets
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet

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


class SecretViewSet(CreateObject, ChangeObject, DeleteObject, ObjectViewSet):
    """The caller's own secrets. Values cannot be read, and secrets of other users are hidden."""

    view_permission = change_permission = Action.SELF_MANAGE
    serializer_class, create_serializer_class, change_serializer_class = SecretOut, SecretIn, SecretChangeIn

    def create_object(self, **values: Any) -> NamedSecret:
        return named_secrets.add(user=self.request.user, **values)

    def change_object(self, secret: NamedSecret, **values: Any) -> NamedSecret:
        return named_secrets.change(secret, by=self.request.user, **values)

    def delete_object(self, secret: NamedSecret) -> None:
        named_secrets.delete(secret, by=self.request.user)
