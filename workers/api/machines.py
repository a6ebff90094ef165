"""`/api/v1/clusters/`, `devices/`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.permissions import Action
from aiplatform.lib.api import KeysetPagination, PlatformViewSet
from aiplatform.lib.idempotency import once
from workers.api.filters import asked, whole
from workers.api.serializers import ClusterIn, ClusterOut, DeviceOut
from workers.models import Device, VirtualCluster
from workers.services import clusters


class ByNumber(KeysetPagination):
    """Oldest first: machines and clusters are few and keep their place."""

    ordering = "id"


class ClusterViewSet(ListModelMixin, RetrieveModelMixin, PlatformViewSet):
    """Virtual clusters: the caller's own, and all of them for administrators."""

    needs = {
        "list": Action.JOBS_VIEW,
        "retrieve": Action.JOBS_VIEW,
        "create": Action.CLUSTER_MANAGE,
        "partial_update": Action.CLUSTER_MANAGE,
        "destroy": Action.CLUSTER_MANAGE,
    }
    asks = {"list": ("search",)}
    serializer_class = ClusterOut
    pagination_class = ByNumber
    lookup_value_regex = r"[0-9]{1,18}"
    queryset = VirtualCluster.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = VirtualCluster.objects.visible_to(user)
        if self.action == "list":
            given = asked(self.request, "search")
            if "search" in given:
                rows = rows.filter(name__icontains=given["search"].replace("\0", ""))
        return rows

    @once
    def create(self, request: Request) -> Response:
        """A new cluster."""
        return Response(ClusterOut(clusters.save(None, **self._given(request, None))).data, status=201)

    def partial_update(self, request: Request, pk: str) -> Response:
        """Change name or limits; what is left out stays."""
        cluster = self.get_object()
        return Response(ClusterOut(clusters.save(cluster, **self._given(request, cluster))).data)

    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a cluster in which nothing was ever run and nobody is a member."""
        clusters.delete(self.get_object())
        return Response(status=204)

    def _given(self, request: Request, cluster: VirtualCluster | None) -> dict[str, Any]:
        form = ClusterIn(data=request.data, partial=cluster is not None)
        form.is_valid(raise_exception=True)
        columns = ("name", "gpu_quota", "gpus_per_user", "jobs_per_user", "max_runtime")
        values = {name: getattr(cluster, name) for name in columns} if cluster else {}
        asked_for = dict(form.validated_data)
        if "max_runtime_s" in asked_for:
            span = asked_for.pop("max_runtime_s")
            asked_for["max_runtime"] = timedelta(seconds=span) if span is not None else None
        return values | asked_for


class DeviceViewSet(ListModelMixin, RetrieveModelMixin, PlatformViewSet):
    """GPUs, and the cores of each node."""

    needs = {"list": Action.CLUSTER_VIEW, "retrieve": Action.CLUSTER_VIEW}
    asks = {"list": ("kind", "node")}
    serializer_class = DeviceOut
    pagination_class = ByNumber
    lookup_value_regex = r"[0-9]{1,18}"
    queryset = Device.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = Device.objects.visible_to(user).select_related("node")
        if self.action == "list":
            given = asked(self.request, "kind", "node")
            if "node" in given:
                rows = rows.filter(node=whole(given, "node"))
            if "kind" in given:
                rows = rows.filter(kind=given["kind"])
        return rows
