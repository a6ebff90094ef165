"""`/api/v1/ssh-keys/`: public keys with which the caller signs in to running jobs."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.access.permissions import Action
from accounts.models import SshKey
from accounts.services import ssh_keys
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from aiplatform.objects.viewsets import CreateObject, DeleteObject, ObjectViewSet


class SshKeyOut(OutMixin, serializers.ModelSerializer[SshKey]):
    class Meta:
        model = SshKey
        fields = ["id", "name", "kind", "fingerprint", "created_at"]
        read_only_fields = fields


class SshKeyIn(StrictMixin, serializers.Serializer[Any]):
    name = serializers.CharField(max_length=ssh_keys.MAX_NAME_LENGTH)
    line = serializers.CharField(max_length=10_000, help_text="The line of a .pub file, as in “ssh-ed25519 AAAA…”.")


class SshKeyViewSet(CreateObject, DeleteObject, ObjectViewSet):
    """The caller's own public keys."""

    view_permission = change_permission = Action.SELF_MANAGE
    serializer_class, create_serializer_class = SshKeyOut, SshKeyIn

    def create_object(self, **values: Any) -> SshKey:
        return ssh_keys.add(user=self.request.user, **values)

    def delete_object(self, key: SshKey) -> None:
        ssh_keys.remove(key=key, by=self.request.user)
