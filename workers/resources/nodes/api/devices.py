"""`/api/v1/devices/`."""

from __future__ import annotations

from typing import Any

from django_filters import Filter
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.api import OldestFirstPagination
from aiplatform.objects.filters import Number, ObjectFilters
from aiplatform.objects.viewsets import ObjectViewSet
from workers.resources.nodes import device_rules
from workers.resources.nodes.api.serializers import DeviceOut, DeviceRulesOut


class DeviceFilters(ObjectFilters):
    kind = Filter("kind")
    node = Number("node")


class DeviceViewSet(ObjectViewSet):
    """GPUs, and the processor of each node with its CPU slots."""

    view_permission, needs = Action.CLUSTER_VIEW, {"kinds": Action.JOBS_SUBMIT}
    change_permission = Action.CLUSTER_MANAGE
    serializer_class = DeviceOut
    filters = DeviceFilters
    pagination_class = OldestFirstPagination

    def get_queryset(self) -> Any:
        return super().get_queryset().select_related("node")

    @extend_schema(responses=DeviceRulesOut(many=True))
    @action(detail=False, pagination_class=None)
    def kinds(self, request: ApiRequest) -> Response:
        """The types of devices that a job may ask for, and the rules of each."""
        return Response(DeviceRulesOut(device_rules.on_offer(), many=True).data)
