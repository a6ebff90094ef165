"""`/api/v1/devices/`."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.api import NumberedViewSet, OldestFirstPagination
from workers.core.models import Device
from workers.resources.nodes import device_rules
from workers.resources.nodes.api.serializers import DeviceOut, DeviceRulesOut


class DeviceViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """GPUs, and the processor of each node with its CPU slots."""

    needs = {"list": Action.CLUSTER_VIEW, "retrieve": Action.CLUSTER_VIEW, "kinds": Action.JOBS_SUBMIT}
    asks = {"list": ("kind", "node")}
    serializer_class = DeviceOut
    pagination_class = OldestFirstPagination
    queryset = Device.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = Device.objects.visible_to(user).select_related("node")
        if self.action == "list":
            params = queries.read_filters(self.request)
            if "node" in params:
                rows = rows.filter(node=queries.read_int(params, "node"))
            if "kind" in params:
                rows = rows.filter(kind=params["kind"])
        return rows

    @extend_schema(responses=DeviceRulesOut(many=True))
    @action(detail=False)
    def kinds(self, request: ApiRequest) -> Response:
        """The types of devices that a job may ask for, and the rules of each."""
        return Response(DeviceRulesOut(device_rules.on_offer(), many=True).data)
