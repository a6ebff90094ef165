"""API of push targets and of pushes. Secrets go in and never come out."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import DestroyModelMixin, ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, StrictMixin, VisibleField, parse_request
from aiplatform.lib.idempotency import once
from aiplatform.lib.message_field import MessageOut
from aiplatform.lib.titles import TITLE
from inference.delivery.push import pushes, targets
from inference.delivery.push.models import Push, PushTarget, UsableBy
from inference.delivery.push.orders import PUSH_TARGETS
from inference.delivery.push.protocols import WAYS
from inference.registry.version_serializers import VersionField

SECRET = "A token, a password or a private key. It is kept sealed and never given back."  # noqa: S105  words about one


class PushTargetOut(OutMixin, serializers.ModelSerializer):
    """A target without its secret. `works` is null until it was tested; `message` says why it does not."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    has_secret = serializers.BooleanField(source="secret", read_only=True)
    host_key = serializers.SerializerMethodField(help_text="Fingerprint of the host key that was pinned.")
    works = serializers.SerializerMethodField()
    message = serializers.CharField(read_only=True)

    class Meta:
        model = PushTarget
        fields = [
            "id", "name", "owner", "visibility", "kind", "address", "options", "has_secret", "ca", "host_key",
            "created_at", "tested_at", "works", "message",
        ]  # fmt: skip

    def get_works(self, target: PushTarget) -> bool | None:
        return None if target.tested_at is None else not target.message

    def get_host_key(self, target: PushTarget) -> str:
        return targets.fingerprint(target)


class PushTargetIn(StrictMixin, serializers.Serializer):
    """A new target."""

    name = serializers.CharField(max_length=100, validators=[TITLE])
    kind = serializers.ChoiceField(list(WAYS))
    address = serializers.CharField(max_length=targets.LONGEST_ADDRESS)
    options = serializers.DictField(required=False, default=dict, help_text="What the kind asks for; see the manual.")
    secret = serializers.CharField(
        max_length=targets.LONGEST_SECRET, required=False, default="", allow_blank=True, write_only=True,
        trim_whitespace=False, help_text=SECRET,
    )  # fmt: skip
    ca = serializers.CharField(max_length=targets.LONGEST_CA, required=False, default="", allow_blank=True)
    visibility = serializers.ChoiceField(UsableBy.choices, required=False, default=UsableBy.PRIVATE)


class PushTargetEditIn(StrictMixin, serializers.Serializer):
    """Changes of a target; what is left out stays."""

    name = serializers.CharField(max_length=100, validators=[TITLE], required=False)
    address = serializers.CharField(max_length=targets.LONGEST_ADDRESS, required=False)
    options = serializers.DictField(required=False)
    secret = serializers.CharField(
        max_length=targets.LONGEST_SECRET, required=False, allow_blank=True, write_only=True, trim_whitespace=False,
        help_text=f"{SECRET} Another address needs it anew.",
    )  # fmt: skip
    ca = serializers.CharField(max_length=targets.LONGEST_CA, required=False, allow_blank=True)
    visibility = serializers.ChoiceField(UsableBy.choices, required=False)


class PushTargetViewSet(ListModelMixin, RetrieveModelMixin, DestroyModelMixin, NumberedViewSet):
    """Places that models are pushed to. `?search=` finds."""

    needs = {
        "list": Action.MODELS_VIEW,
        "retrieve": Action.MODELS_VIEW,
        "create": Action.MODELS_MANAGE,
        "partial_update": Action.MODELS_MANAGE,
        "destroy": Action.MODELS_MANAGE,
        "test": Action.MODELS_MANAGE,
        "forget_host_key": Action.MODELS_MANAGE,
    }
    asks = {"list": ("search",)}
    orders = PUSH_TARGETS
    serializer_class = PushTargetOut
    queryset = PushTarget.objects.none()

    def get_queryset(self) -> Any:
        rows = PushTarget.objects.visible_to(self.request.user).for_list()
        return rows.named_like(queries.read_filters(self.request).get("search", ""))

    def _own(self, request: ApiRequest) -> PushTarget:
        target: PushTarget = self.get_object()
        if not PushTarget.objects.editable_by(request.user).filter(pk=target.pk).exists():
            self.permission_denied(request)
        return target

    @extend_schema(request=PushTargetIn, responses={201: PushTargetOut})
    @once
    def create(self, request: ApiRequest) -> Response:
        given = parse_request(PushTargetIn(data=request.data), targets.check)
        return Response(PushTargetOut(targets.create(user=request.user, **given)).data, status=201)

    @extend_schema(request=PushTargetEditIn, responses=PushTargetOut)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        target = self._own(request)
        given = parse_request(PushTargetEditIn(data=request.data))
        return Response(PushTargetOut(targets.change(target=target, by=request.user, **given)).data)

    def perform_destroy(self, instance: PushTarget) -> None:
        targets.delete(target=self._own(self.request), by=self.request.user)

    @extend_schema(request=None, responses=PushTargetOut)
    @action(detail=True, methods=["post"])
    def test(self, request: ApiRequest, pk: str) -> Response:
        """Ask the place, with its credentials; `works` says how that went. Pins the key of a host."""
        target = self._own(request)
        targets.test(target)
        return Response(PushTargetOut(target).data)

    @extend_schema(request=None, responses=PushTargetOut)
    @action(detail=True, methods=["post"], url_path="forget-host-key")
    def forget_host_key(self, request: ApiRequest, pk: str) -> Response:
        """Let the next test pin the key that the host shows then."""
        target = self._own(request)
        targets.forget_host_key(target=target, by=request.user)
        target.refresh_from_db()
        return Response(PushTargetOut(target).data)


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


class PushViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Pushes. `?state=` filters, `?search=` finds."""

    needs = {
        "list": Action.MODELS_VIEW,
        "retrieve": Action.MODELS_VIEW,
        "create": Action.MODELS_MANAGE,
        "stop": Action.MODELS_MANAGE,
        "again": Action.MODELS_MANAGE,
    }
    asks = {"list": ("state", "search")}
    serializer_class = PushOut
    queryset = Push.objects.none()

    def get_queryset(self) -> Any:
        given = queries.read_filters(self.request)
        state = queries.read_choice(given, "state", *Push.State.values)
        rows = Push.objects.visible_to(self.request.user).for_list().named_like(given.get("search", ""))
        return rows.filter(state=state) if state else rows

    @extend_schema(request=PushIn, responses={201: PushOut})
    @once
    def create(self, request: ApiRequest) -> Response:
        given = parse_request(PushIn(data=request.data, context=self.get_serializer_context()))
        push = pushes.submit(
            user=request.user, version=given["model_version"], target=given["target"], content=given["content"]
        )
        return Response(PushOut(push).data, status=201)

    @extend_schema(request=None, responses=PushOut)
    @action(detail=True, methods=["post"])
    def stop(self, request: ApiRequest, pk: str) -> Response:
        """End it; what sends it notices within seconds."""
        push = get_object_or_404(Push.objects.editable_by(request.user), pk=pk)
        pushes.stop(push)
        push.refresh_from_db()
        return Response(PushOut(push).data)

    @extend_schema(request=None, responses={201: PushOut})
    @action(detail=True, methods=["post"])
    def again(self, request: ApiRequest, pk: str) -> Response:
        """Push once more what failed or was stopped."""
        push = get_object_or_404(Push.objects.editable_by(request.user).for_list(), pk=pk)
        return Response(PushOut(pushes.again(push, by=request.user)).data, status=201)
