"""`/api/v1/notifications/`: the caller's notifications, and by which channels they come."""

from __future__ import annotations

from typing import Any

from django_filters import Filter
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.models import Notification
from accounts.services import notify
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import PlatformAPIView, StrictMixin
from aiplatform.lib.message_field import MessageOut
from aiplatform.objects.filters import ObjectFilters
from aiplatform.objects.viewsets import ObjectViewSet, object_action


class NotificationOut(OutMixin, serializers.ModelSerializer):
    """One notification in the caller's language; `read_at` is null until it was seen.

    `message` is the title for scripts, as code and facts.
    """

    title = serializers.CharField(read_only=True)
    text = serializers.CharField(read_only=True)
    message = MessageOut(source="title", read_only=True)

    class Meta:
        model = Notification
        fields = ["id", "kind", "title", "text", "message", "url", "created_at", "read_at"]


class ReadOut(serializers.Serializer):
    """How many were new until now."""

    marked = serializers.IntegerField()


class ChoicesIn(StrictMixin, serializers.Serializer):
    """Names of kinds by channel. What is left out stays as it is."""

    mail = serializers.ListField(child=serializers.ChoiceField(choices=[]), required=False)
    webhook = serializers.ListField(child=serializers.ChoiceField(choices=[]), required=False)
    webhook_url = serializers.CharField(max_length=500, allow_blank=True, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("mail", "webhook"):
            self.fields[name].child.choices = notify.KINDS.names()  # type: ignore[attr-defined]  # a list of choices, declared above


class ChoicesOut(serializers.Serializer):
    """What is chosen; the secret checks `X-Aip-Signature` of webhooks."""

    kinds = serializers.SerializerMethodField()
    mail = serializers.ListField(child=serializers.CharField())
    webhook = serializers.ListField(child=serializers.CharField())
    webhook_url = serializers.CharField()
    webhook_secret = serializers.CharField()

    def get_kinds(self, _row: Any) -> list[str]:
        return notify.KINDS.names()


class NotificationFilters(ObjectFilters):
    unread = Filter("read_at", method=lambda rows, _name, word: rows.filter(read_at=None) if word == "1" else rows)


class NotificationViewSet(ObjectViewSet):
    """The caller's own notifications, newest first. Filter: `unread=1`."""

    view_permission = change_permission = Action.SELF_MANAGE
    serializer_class = NotificationOut
    filters = NotificationFilters

    @object_action()
    def read(self, notification: Notification) -> None:
        """Mark one as seen."""
        notify.mark_read(user=self.request.user, pk=notification.pk)

    @extend_schema(request=None, responses=ReadOut)
    @action(detail=False, methods=["post"], url_path="read-all")
    def read_all(self, request: Request) -> Response:
        """Mark all as seen."""
        user: Any = request.user
        return Response({"marked": notify.mark_read(user=user)})


class NoticeChoicesView(PlatformAPIView):
    """Which kinds of news come by mail and by webhook."""

    needs = Action.SELF_MANAGE

    @extend_schema(responses=ChoicesOut)
    def get(self, request: Request) -> Response:
        user: Any = request.user
        return Response(ChoicesOut(notify.choices(user)).data, headers={"Cache-Control": "no-store"})

    @extend_schema(request=ChoicesIn, responses=ChoicesOut)
    def patch(self, request: Request) -> Response:
        user: Any = request.user
        serializer = ChoicesIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        choices = notify.choices(user)
        fields = {
            "mail": choices.mail,
            "webhook": choices.webhook,
            "webhook_url": choices.webhook_url,
        } | serializer.validated_data
        row = notify.choose(user=user, **fields)
        return Response(ChoicesOut(row).data, headers={"Cache-Control": "no-store"})
