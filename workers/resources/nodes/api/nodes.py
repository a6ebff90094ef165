"""`/api/v1/nodes/`: machines, their tokens, and the endpoint by which a machine joins."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from django_filters import Filter
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access.permissions import Action
from aiplatform.lib.api import OldestFirstPagination, parse_request
from aiplatform.objects.filters import Choice, ObjectFilters
from aiplatform.objects.viewsets import DeleteObject, ObjectBase, ObjectViewSet, object_action
from workers.core.models import JoinToken, Node
from workers.resources.nodes import eviction_policy, lifecycle, mps_policy
from workers.resources.nodes.api.serializers import (
    JoinIn,
    JoinTokenIn,
    JoinTokenMade,
    JoinTokenOut,
    NodeEventOut,
    NodeOut,
    ProbeIn,
)


class NodeFilters(ObjectFilters):
    state = Choice("state", Node.State.choices)
    name = Filter("name")


class NodeViewSet(ObjectViewSet):
    """Machines with their devices; removed ones only by `?state=removed`."""

    view_permission, change_permission = Action.CLUSTER_VIEW, Action.CLUSTER_MANAGE
    needs = {"events": Action.CLUSTER_VIEW}
    serializer_class = NodeOut
    filters = NodeFilters
    pagination_class = OldestFirstPagination

    def get_queryset(self) -> Any:
        rows = super().get_queryset().prefetch_related("devices__node")
        if self.action == "list" and not self.request.query_params.get("state"):
            rows = rows.exclude(state=Node.State.REMOVED)
        return rows

    @extend_schema(responses=NodeEventOut(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def events(self, request: Request, pk: str) -> Response:
        """The machine's event log, newest first, 100 lines."""
        rows = self.get_object().events.select_related("device", "by")[:100]
        return Response(NodeEventOut(rows, many=True).data)

    @object_action()
    def drain(self, node: Node) -> None:
        """Start nothing new there; what runs goes on."""
        lifecycle.drain(node, by=self.request.user)

    @object_action()
    def undrain(self, node: Node) -> None:
        """Let it take work again."""
        lifecycle.undrain(node, by=self.request.user)

    @object_action()
    def remove(self, node: Node) -> None:
        """Take it out of the cluster; refused while work runs there."""
        lifecycle.remove(node, by=self.request.user)

    @object_action()
    def evict(self, node: Node) -> None:
        """Allow that unwilling work is moved off its cards; refused until that was proven on its driver."""
        eviction_policy.allow(node, by=self.request.user)

    @object_action(url_path="keep", url_name="keep")
    def forbid_eviction(self, node: Node) -> None:
        """Move no further work off its cards."""
        eviction_policy.forbid(node, by=self.request.user)

    @object_action(url_path="mps-on")
    def mps_on(self, node: Node) -> None:
        """Let jobs on shares of its cards compute at the same time, by CUDA MPS; `mps_not` says why it would not."""
        mps_policy.allow(node, by=self.request.user)

    @object_action(url_path="mps-off")
    def mps_off(self, node: Node) -> None:
        """Let no further job use MPS; those that do keep it until they end."""
        mps_policy.forbid(node, by=self.request.user)


class TokenViewSet(DeleteObject, ListModelMixin, ObjectBase):
    """One-time tokens with which machines join."""

    view_permission = change_permission = Action.CLUSTER_MANAGE
    serializer_class = JoinTokenOut

    @extend_schema(request=JoinTokenIn, responses={201: JoinTokenMade})
    def create(self, request: Request) -> Response:
        """A new token; `token` in the answer is its secret and is shown this once."""
        values = parse_request(JoinTokenIn(data=request.data))
        row, secret = lifecycle.make_token(by=self.request.user, lifetime=timedelta(hours=values["hours"]))
        body = JoinTokenMade(row, context={"token": secret}).data
        return Response(body, status=201, headers={"Cache-Control": "no-store"})

    def delete_object(self, token: JoinToken) -> None:
        lifecycle.revoke(token, by=self.request.user)


class JoinView(APIView):
    """A machine hands in its token and hears what it needs. The token is the proof; there is no account."""

    authentication_classes = []
    permission_classes = [AllowAny]

    @extend_schema(request=JoinIn, responses={201: OpenApiTypes.OBJECT})
    def post(self, request: Request) -> Response:
        form = JoinIn(data=request.data)
        form.is_valid(raise_exception=True)
        values = dict(form.validated_data)
        welcome = lifecycle.join(secret=values.pop("token"), **values)
        body = {"node": welcome.node.pk, "variables": welcome.variables, "time": time.time()}
        return Response(body, status=201, headers={"Cache-Control": "no-store"})


class ProbeView(APIView):
    """A node proves that its data root is still the server's, and hears whether its port for channels is reached.

    It is known by its own random id.
    """

    authentication_classes = []
    permission_classes = [AllowAny]

    @extend_schema(request=ProbeIn, responses={200: OpenApiTypes.OBJECT})
    def post(self, request: Request) -> Response:
        form = ProbeIn(data=request.data)
        form.is_valid(raise_exception=True)
        lifecycle.probe(**form.validated_data)
        reached = lifecycle.reaches(form.validated_data["name"])
        return Response({"shared": True, "reached": reached, "time": time.time()})
