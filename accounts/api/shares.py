"""Shares of a dataset, a model, an annotation project."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import sharing
from accounts.access.permissions import Action
from accounts.models import User
from accounts.services import shares
from aiplatform.lib.api import PlatformAPIView, StrictMixin


class ShareIn(StrictMixin, serializers.Serializer):
    """A username, or a group's id or name, and the level they get in place of what they had; null takes it back."""

    person = serializers.CharField(max_length=50, required=False, allow_blank=True, default="")
    group = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=1, max_value=2**63 - 1)
    group_name = serializers.CharField(max_length=50, required=False, allow_blank=True, default="")
    level = serializers.ChoiceField(choices=sharing.LADDER, allow_null=True)


class ShareOut(serializers.Serializer):
    person = serializers.CharField(allow_null=True)
    group = serializers.IntegerField(allow_null=True)
    name = serializers.CharField()
    level = serializers.CharField()


class SharesView(PlatformAPIView):
    """Who has which level on one thing. For its owner, those who manage it, and operators."""

    needs = Action.SELF_MANAGE

    @extend_schema(responses=ShareOut(many=True))
    def get(self, request: Request, kind: str, pk: int) -> Response:
        _known, thing = shares.find(kind, pk, by=request.user)  # type: ignore[arg-type]  # signed in, by `needs` or the admin site
        return Response(_list_shares(thing))

    @extend_schema(request=ShareIn, responses=ShareOut(many=True))
    def put(self, request: Request, kind: str, pk: int) -> Response:
        shares.find(kind, pk, by=request.user)  # type: ignore[arg-type]  # signed in, by `needs` or the admin site
        serializer = ShareIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields: dict[str, Any] = dict(serializer.validated_data)
        level, name = fields.pop("level"), fields.pop("group_name")
        fields["group"] = fields["group"] or name
        target: dict[str, Any] = {"kind": kind, "pk": pk, "by": request.user, **fields}
        return Response(
            _list_shares(shares.unshare(**target) if level is None else shares.share(**target, level=level))
        )


def _list_shares(thing: Any) -> list[dict[str, Any]]:
    return [
        {
            "person": whom.username if isinstance(whom, User) else None,
            "group": None if isinstance(whom, User) else whom.pk,
            "name": str(whom),
            "level": level,
        }
        for level, whom in sharing.shares_of(thing)
    ]
