"""API of services."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.api import NumberedViewSet, parse_request
from aiplatform.lib.idempotency import once
from inference.serving import endpoints, model_swaps
from inference.serving.feedback.api import FeedbackActions
from inference.serving.keys.api import KeyActions
from inference.serving.models import Service
from inference.serving.monitoring.api import MonitoringActions
from inference.serving.orders import SERVICES
from inference.serving.serializers import ServiceDetailOut, ServiceEditIn, ServiceIn, ServiceModelIn, ServiceOut
from inference.serving.traffic.api import TrafficActions


class ServiceViewSet(
    TrafficActions,
    FeedbackActions,
    KeyActions,
    MonitoringActions,
    ListModelMixin,
    RetrieveModelMixin,
    NumberedViewSet,
):
    """Inference services. `?search=` finds by name, description and model."""

    needs = {
        "list": Action.SERVICES_VIEW,
        "retrieve": Action.SERVICES_VIEW,
        "create": Action.SERVICES_MANAGE,
        "partial_update": Action.SERVICES_MANAGE,
        "model": Action.SERVICES_MANAGE,
        "start": Action.SERVICES_MANAGE,
        "stop": Action.SERVICES_MANAGE,
        "trials": Action.SERVICES_VIEW,
        "trial": Action.SERVICES_MANAGE,
        "promote": Action.SERVICES_MANAGE,
        "roll_back": Action.SERVICES_MANAGE,
        "usage": Action.SERVICES_VIEW,
        "monitoring": Action.SERVICES_MANAGE,
        "keys": Action.SERVICES_MANAGE,
        "revoke_key": Action.SERVICES_MANAGE,
        "feedback": Action.SERVICES_CALL,
        "samples": Action.SERVICES_MANAGE,
        "annotate": Action.SERVICES_MANAGE,
        "destroy": Action.SERVICES_MANAGE,
    }
    asks = {"list": ("search",), "usage": ("span",), "monitoring": ("span",)}
    orders = SERVICES
    serializer_class = ServiceOut
    queryset = Service.objects.none()

    def get_queryset(self) -> Any:
        rows = Service.objects.visible_to(self.request.user).for_list()
        return rows.named_like(self.request.query_params.get("search", ""))

    def get_serializer_class(self) -> Any:
        return ServiceDetailOut if self.action == "retrieve" else ServiceOut

    def get_object(self) -> Service:
        return model_swaps.refresh(super().get_object())

    def paginate_queryset(self, queryset: QuerySet[Service] | Any) -> list[Any] | None:
        page = super().paginate_queryset(queryset)
        return [model_swaps.refresh(service) for service in page or []]

    def _own(self) -> Service:
        service: Service = super().get_object()
        if not Service.objects.editable_by(self.request.user).filter(pk=service.pk).exists():
            self.permission_denied(self.request)
        return service

    def _answer(self, service: Service, status: int = 200) -> Response:
        return Response(ServiceOut(service, context=self.get_serializer_context()).data, status=status)

    @extend_schema(request=ServiceIn, responses={201: ServiceOut})
    @once
    def create(self, request: ApiRequest) -> Response:
        serializer = ServiceIn(data=request.data, context=self.get_serializer_context())
        fields = parse_request(serializer, endpoints.check, user=request.user)
        return self._answer(endpoints.create(user=request.user, **fields), 201)

    @extend_schema(request=ServiceEditIn, responses=ServiceOut)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        service = self._own()
        serializer = ServiceEditIn(data=request.data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        current = {"description": service.description, "visibility": service.visibility}
        return self._answer(endpoints.edit(service=service, **{**current, **serializer.validated_data}))

    @extend_schema(request=ServiceModelIn, responses={202: ServiceOut})
    @action(detail=True, methods=["post"])
    def model(self, request: ApiRequest, pk: str) -> Response:
        """Serve another version: its server starts next to the current one, and takes over when it is ready."""
        service = self._own()
        serializer = ServiceModelIn(data=request.data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        version = serializer.validated_data["model_version"]
        return self._answer(model_swaps.change_model(service=service, version=version, by=request.user), 202)

    @extend_schema(request=None, responses={202: ServiceOut})
    @action(detail=True, methods=["post"])
    @once
    def start(self, request: ApiRequest, pk: str) -> Response:
        """Start a stopped service again, at the same address."""
        return self._answer(endpoints.start(service=self._own(), by=request.user), 202)

    @extend_schema(request=None, responses={202: ServiceOut})
    @action(detail=True, methods=["post"])
    def stop(self, request: ApiRequest, pk: str) -> Response:
        """Request a stop; the address answers 410 until the service is started again."""
        return self._answer(endpoints.stop(service=self._own(), by=request.user), 202)

    def destroy(self, request: ApiRequest, pk: str) -> Response:
        endpoints.delete(service=self._own(), by=request.user)
        return Response(status=204)
