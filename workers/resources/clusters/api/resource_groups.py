"""`/api/v1/resource-groups/`: machines kept for some kinds of jobs."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, OldestFirstPagination, StrictMixin, VisibleField, parse_request
from aiplatform.lib.idempotency import once
from workers.core.models import Node, ResourceGroup, ResourceWindow
from workers.resources.clusters import resource_groups
from workers.resources.clusters.resource_groups import Hours


class WindowSerializer(StrictMixin, serializers.ModelSerializer[ResourceWindow]):
    """Hours by the site's clocks; `weekdays` on which they begin, 0 is Monday; equal times are a whole day."""

    weekdays = serializers.ListField(child=serializers.IntegerField(min_value=0, max_value=6), max_length=7)
    begins = serializers.TimeField(format="%H:%M")
    ends = serializers.TimeField(format="%H:%M")

    class Meta:
        model = ResourceWindow
        fields = ("weekdays", "begins", "ends")


class ResourceGroupOut(OutMixin, serializers.ModelSerializer[ResourceGroup]):
    """Machines on which, in its windows, only jobs of `kinds` start; no windows: always.

    Windows are hours of `time_zone`, which is the site's.
    """

    nodes: Any = serializers.SlugRelatedField(many=True, read_only=True, slug_field="name")
    windows = WindowSerializer(many=True)
    time_zone = serializers.SerializerMethodField()

    class Meta:
        model = ResourceGroup
        fields = ("id", "name", "nodes", "kinds", "windows", "time_zone")

    def get_time_zone(self, group: ResourceGroup) -> str:
        return settings.TIME_ZONE


class ResourceGroupIn(StrictMixin, serializers.Serializer[Any]):
    """Nodes by id, kinds by name."""

    name = serializers.CharField(max_length=50)
    nodes = serializers.ListField(child=VisibleField(Node), max_length=1000)
    kinds = serializers.ListField(child=serializers.CharField(max_length=20), max_length=50)
    windows = WindowSerializer(many=True, required=False)


class ResourceGroupViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """What machines are kept for."""

    needs = {
        "list": Action.CLUSTER_VIEW,
        "retrieve": Action.CLUSTER_VIEW,
        "create": Action.CLUSTER_MANAGE,
        "partial_update": Action.CLUSTER_MANAGE,
        "destroy": Action.CLUSTER_MANAGE,
    }
    serializer_class = ResourceGroupOut
    pagination_class = OldestFirstPagination
    queryset = ResourceGroup.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        return ResourceGroup.objects.visible_to(user).prefetch_related("nodes", "windows")

    @extend_schema(request=ResourceGroupIn, responses={201: ResourceGroupOut})
    @once
    def create(self, request: Request) -> Response:
        """Keep machines for some kinds of jobs."""
        return Response(ResourceGroupOut(self._save(None)).data, status=201)

    @extend_schema(request=ResourceGroupIn, responses=ResourceGroupOut)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a group; what is left out stays."""
        group = self.get_object()
        self._save(group)
        return Response(ResourceGroupOut(self.get_object()).data)

    def destroy(self, request: Request, pk: str) -> Response:
        """Let everybody start on its machines again."""
        user: Any = request.user
        resource_groups.delete(self.get_object(), by=user)
        return Response(status=204)

    def _save(self, group: ResourceGroup | None) -> ResourceGroup:
        user: Any = self.request.user
        context = {"request": self.request}
        serializer = ResourceGroupIn(data=self.request.data, partial=group is not None, context=context)
        changes = parse_request(serializer, partial(resource_groups.check, group))
        hours = changes.pop("windows", None)
        if hours is None:
            hours = list(group.windows.values("weekdays", "begins", "ends")) if group else []
        if group:
            changes = {"name": group.name, "nodes": list(group.nodes.all()), "kinds": group.kinds} | changes
        spans = [Hours(frozenset(window["weekdays"]), window["begins"], window["ends"]) for window in hours]
        return resource_groups.save(group, **changes, hours=spans, by=user)
