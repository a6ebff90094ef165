"""`/api/v1/devices/`."""

from __future__ import annotations

from typing import Any

from rest_framework.mixins import ListModelMixin, RetrieveModelMixin

from accounts.permissions import Action
from aiplatform.lib import queries
from aiplatform.lib.api import NumberedViewSet, OldestFirstPagination
from workers.machines.api.serializers import DeviceOut
from workers.models import Device


class DeviceViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """GPUs, and the processor of each node with its CPU slots."""

    needs = {"list": Action.CLUSTER_VIEW, "retrieve": Action.CLUSTER_VIEW}
    asks = {"list": ("kind", "node")}
    serializer_class = DeviceOut
    pagination_class = OldestFirstPagination
    queryset = Device.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = Device.objects.visible_to(user).select_related("node")
        if self.action == "list":
            given = queries.given(self.request)
            if "node" in given:
                rows = rows.filter(node=queries.whole(given, "node"))
            if "kind" in given:
                rows = rows.filter(kind=given["kind"])
        return rows
