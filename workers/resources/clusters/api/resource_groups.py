"""`/api/v1/resource-groups/`: machines kept for some kinds of jobs."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.conf import settings
from rest_framework import serializers

from accounts.access.permissions import Action
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import OldestFirstPagination, StrictMixin, VisibleField
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet
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


class ResourceGroupViewSet(CreateObject, ChangeObject, DeleteObject, ObjectViewSet):
    """What machines are kept for."""

    view_permission, change_permission = Action.CLUSTER_VIEW, Action.CLUSTER_MANAGE
    serializer_class, create_serializer_class = ResourceGroupOut, ResourceGroupIn
    pagination_class = OldestFirstPagination

    def get_input_serializer(self, **options: Any) -> Any:
        partial = self.action == "partial_update"
        return ResourceGroupIn(context=self.get_serializer_context(), partial=partial, **options)

    def service_check(self) -> Any:
        return partial(resource_groups.check, self.get_object() if self.action == "partial_update" else None)

    def create_object(self, *, windows: list[Any] | None = None, **values: Any) -> ResourceGroup:
        return resource_groups.save(None, **values, hours=_hours(windows or []), by=self.request.user)

    def change_object(self, group: ResourceGroup, *, windows: list[Any] | None = None, **values: Any) -> None:
        current = {"name": group.name, "nodes": list(group.nodes.all()), "kinds": group.kinds}
        hours = list(group.windows.values("weekdays", "begins", "ends")) if windows is None else windows
        resource_groups.save(group, **current | values, hours=_hours(hours), by=self.request.user)

    def delete_object(self, group: ResourceGroup) -> None:
        resource_groups.delete(group, by=self.request.user)


def _hours(windows: list[Any]) -> list[Hours]:
    return [Hours(frozenset(window["weekdays"]), window["begins"], window["ends"]) for window in windows]
