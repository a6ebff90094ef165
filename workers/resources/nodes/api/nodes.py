"""`/api/v1/nodes/`: machines, their tokens, and the endpoint by which a machine joins."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import DestroyModelMixin, ListModelMixin, RetrieveModelMixin
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access.permissions import Action
from aiplatform.lib import queries
from aiplatform.lib.api import NumberedViewSet, OldestFirstPagination
from aiplatform.lib.errors import Invalid
from workers.core.models import JoinToken, Node
from workers.resources.nodes import eviction_policy, lifecycle, mps_policy
from workers.resources.nodes.api.serializers import JoinIn, JoinTokenIn, JoinTokenOut, NodeEventOut, NodeOut, ProbeIn


class NodeViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Machines with their devices; removed ones only by `?state=removed`."""

    needs = {
        "list": Action.CLUSTER_VIEW,
        "retrieve": Action.CLUSTER_VIEW,
        "events": Action.CLUSTER_VIEW,
        "drain": Action.CLUSTER_MANAGE,
        "undrain": Action.CLUSTER_MANAGE,
        "remove": Action.CLUSTER_MANAGE,
        "evict": Action.CLUSTER_MANAGE,
        "forbid_eviction": Action.CLUSTER_MANAGE,
        "mps_on": Action.CLUSTER_MANAGE,
        "mps_off": Action.CLUSTER_MANAGE,
    }
    asks = {"list": ("state", "name")}
    serializer_class = NodeOut
    pagination_class = OldestFirstPagination
    queryset = Node.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = Node.objects.visible_to(user).prefetch_related("devices__node")
        if self.action == "list":
            params = queries.read_filters(self.request)
            if params.get("state", Node.State.LIVE) not in Node.State.values:
                raise Invalid(_("Unknown state %(name)s.") % {"name": params["state"][:30]})
            if "state" not in params:
                rows = rows.exclude(state=Node.State.REMOVED)
            rows = rows.filter(**params)
        return rows

    @action(detail=True, methods=["get"])
    def events(self, request: Request, pk: str) -> Response:
        """The machine's event log, newest first, 100 lines."""
        rows = self.get_object().events.select_related("device", "by")[:100]
        return Response(NodeEventOut(rows, many=True).data)

    @action(detail=True, methods=["post"])
    def drain(self, request: Request, pk: str) -> Response:
        """Start nothing new there; what runs goes on."""
        return self._wish(lifecycle.drain)

    @action(detail=True, methods=["post"])
    def undrain(self, request: Request, pk: str) -> Response:
        """Let it take work again."""
        return self._wish(lifecycle.undrain)

    @action(detail=True, methods=["post"])
    def remove(self, request: Request, pk: str) -> Response:
        """Take it out of the cluster; refused while work runs there."""
        return self._wish(lifecycle.remove)

    @action(detail=True, methods=["post"])
    def evict(self, request: Request, pk: str) -> Response:
        """Allow that unwilling work is moved off its cards; refused until that was proven on its driver."""
        return self._wish(eviction_policy.allow)

    @action(detail=True, methods=["post"], url_path="keep", url_name="keep")
    def forbid_eviction(self, request: Request, pk: str) -> Response:
        """Move no further work off its cards."""
        return self._wish(eviction_policy.forbid)

    @action(detail=True, methods=["post"], url_path="mps-on")
    def mps_on(self, request: Request, pk: str) -> Response:
        """Let jobs on shares of its cards compute at the same time, by CUDA MPS; `mps_not` says why it would not."""
        return self._wish(mps_policy.allow)

    @action(detail=True, methods=["post"], url_path="mps-off")
    def mps_off(self, request: Request, pk: str) -> Response:
        """Let no further job use MPS; those that do keep it until they end."""
        return self._wish(mps_policy.forbid)

    def _wish(self, act: Callable[..., Node]) -> Response:
        act(self.get_object(), by=self.request.user)
        return Response(NodeOut(self.get_object()).data)


class TokenViewSet(ListModelMixin, DestroyModelMixin, NumberedViewSet):
    """One-time tokens with which machines join."""

    needs = {"list": Action.CLUSTER_MANAGE, "create": Action.CLUSTER_MANAGE, "destroy": Action.CLUSTER_MANAGE}
    serializer_class = JoinTokenOut
    queryset = JoinToken.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        return JoinToken.objects.visible_to(user).select_related("made_by", "node")

    @extend_schema(request=JoinTokenIn)
    def create(self, request: Request) -> Response:
        """A new token; `token` in the answer is its secret and is shown this once."""
        form = JoinTokenIn(data=request.data)
        form.is_valid(raise_exception=True)
        user: Any = request.user
        row, secret = lifecycle.make_token(by=user, lifetime=timedelta(hours=form.validated_data["hours"]))
        body = {**JoinTokenOut(row).data, "token": secret}
        return Response(body, status=201, headers={"Cache-Control": "no-store"})

    def perform_destroy(self, instance: JoinToken) -> None:
        user: Any = self.request.user
        lifecycle.revoke(instance, by=user)


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
