"""API of push targets and of pushes. Secrets go in and never come out."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.access.permissions import Action
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField
from aiplatform.lib.message_field import MessageOut
from aiplatform.objects.viewsets import (
    ChangeObject,
    CreateObject,
    DeleteObject,
    ObjectSerializer,
    ObjectViewSet,
    object_action,
)
from inference.delivery.push import pushes, targets
from inference.delivery.push.filters import PushFilters, PushTargetFilters
from inference.delivery.push.models import Push, PushTarget
from inference.delivery.push.protocols import PROTOCOLS
from inference.registry.version_serializers import VersionField


class PushTargetSerializer(ObjectSerializer):
    """A target without its secret. `works` is null until it was tested; `message` says why it does not."""

    writable = ("name", "visibility", "kind", "address", "options", "secret", "ca")
    create_only = ("kind",)

    kind = serializers.ChoiceField(list(PROTOCOLS))
    options = serializers.DictField(
        required=False, default=dict, help_text="Settings of the target type; see the reference."
    )
    secret = serializers.CharField(
        max_length=targets.LONGEST_SECRET, required=False, default="", allow_blank=True, write_only=True,
        trim_whitespace=False, help_text="A token, a password or a private key; stored encrypted and never shown. "
        "Another address requires it again.",
    )  # fmt: skip
    has_secret = serializers.BooleanField(source="secret", read_only=True)
    host_key = serializers.SerializerMethodField(help_text="Fingerprint of the host key that was pinned.")
    works = serializers.SerializerMethodField()
    message = serializers.CharField(read_only=True)

    class Meta:
        model = PushTarget
        fields = [
            "id", "name", "owner", "visibility", "kind", "address", "options", "secret", "has_secret", "ca", "host_key",
            "created_at", "tested_at", "works", "message",
        ]  # fmt: skip
        extra_kwargs = {"ca": {"max_length": targets.LONGEST_CA}}

    def get_works(self, target: PushTarget) -> bool | None:
        return None if target.tested_at is None else not target.message

    def get_host_key(self, target: PushTarget) -> str:
        return targets.fingerprint(target)


class PushTargetViewSet(CreateObject, ChangeObject, DeleteObject, ObjectViewSet):
    """Places that models are pushed to. `?search=` finds."""

    view_permission, change_permission = Action.MODELS_VIEW, Action.MODELS_MANAGE
    serializer_class = PushTargetSerializer
    filters = PushTargetFilters
    forbids_change = True

    def service_check(self) -> Any:
        return targets.check if self.action == "create" else None

    def create_object(self, **values: Any) -> PushTarget:
        return targets.create(user=self.request.user, **values)

    def change_object(self, target: PushTarget, **values: Any) -> PushTarget:
        return targets.change(target=target, by=self.request.user, **values)

    def delete_object(self, target: PushTarget) -> None:
        targets.delete(target=target, by=self.request.user)

    @object_action()
    def test(self, target: PushTarget) -> None:
        """Test the connection with the credentials; `works` is the result. Pins the key of a host."""
        targets.test(target)

    @object_action(url_path="forget-host-key")
    def forget_host_key(self, target: PushTarget) -> None:
        """Let the next test pin the key that the host shows then."""
        targets.forget_host_key(target=target, by=self.request.user)


class PushOut(OutMixin, serializers.ModelSerializer):
    """A push: how far it is, and where it landed."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    target: Any = serializers.PrimaryKeyRelatedField(read_only=True)
    model_version: Any = serializers.PrimaryKeyRelatedField(source="version", read_only=True)
    model = serializers.CharField(source="model_name", read_only=True)
    message = MessageOut(read_only=True)
    sentence = serializers.CharField(source="message", read_only=True)

    class Meta:
        model = Push
        fields = [
            "id", "owner", "target", "target_name", "model_version", "model", "content", "state", "message", "sentence",
            "sent_bytes", "size_bytes", "sha256", "landed", "tries", "not_before", "created_at", "ended_at",
        ]  # fmt: skip


class PushIn(StrictMixin, serializers.Serializer):
    """Which version goes where."""

    model_version = VersionField(to_use=True)
    target = VisibleField(PushTarget, to_use=True)
    content = serializers.ChoiceField(Push.Content.choices, required=False, default=Push.Content.PACKAGE)


class PushViewSet(CreateObject, ObjectViewSet):
    """Pushes. `?state=` filters, `?search=` finds."""

    view_permission, change_permission = Action.MODELS_VIEW, Action.MODELS_MANAGE
    serializer_class, create_serializer_class = PushOut, PushIn
    filters = PushFilters

    def create_object(self, *, model_version: Any, **values: Any) -> Push:
        return pushes.submit(user=self.request.user, version=model_version, **values)

    @object_action()
    def stop(self, push: Push) -> None:
        """Stop the push within seconds."""
        pushes.stop(push)

    @object_action(status=201)
    def again(self, push: Push) -> Push:
        """Push again what failed or was stopped."""
        return pushes.again(push, by=self.request.user)
