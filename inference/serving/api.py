"""API of services."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.models import QuerySet

from accounts.access.permissions import Action
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet, object_action
from inference.registry.models import ModelVersion
from inference.serving import endpoints, model_swaps
from inference.serving.feedback.api import FeedbackActions
from inference.serving.filters import ServiceFilters
from inference.serving.keys.api import KeyActions
from inference.serving.models import Service
from inference.serving.monitoring.api import MonitoringActions
from inference.serving.serializers import ServiceDetailOut, ServiceEditIn, ServiceIn, ServiceModelIn, ServiceOut
from inference.serving.traffic.api import TrafficActions


class ServiceViewSet(
    TrafficActions, FeedbackActions, KeyActions, MonitoringActions, CreateObject, ChangeObject, DeleteObject,
    ObjectViewSet,
):  # fmt: skip
    """Inference services. `?search=` finds by name, description and model."""

    view_permission, change_permission = Action.SERVICES_VIEW, Action.SERVICES_MANAGE
    needs = {"trials": Action.SERVICES_VIEW, "usage": Action.SERVICES_VIEW, "feedback": Action.SERVICES_CALL}
    asks = {"usage": ("span",), "monitoring": ("span",)}
    serializer_class, create_serializer_class, change_serializer_class = ServiceOut, ServiceIn, ServiceEditIn
    filters = ServiceFilters
    reach = {"feedback": "visible_to"}
    forbids_change = True

    def get_serializer_class(self) -> Any:
        return ServiceDetailOut if self.action == "retrieve" else ServiceOut

    def get_object(self) -> Service:
        return model_swaps.refresh(super().get_object())

    def paginate_queryset(self, queryset: QuerySet[Service] | Any) -> list[Any] | None:
        page = super().paginate_queryset(queryset)
        return [model_swaps.refresh(service) for service in page or []]

    def own(self) -> Service:
        """The service, for users who may change it, whatever the method of the request."""
        service = self.get_object()
        if not Service.objects.editable_by(self.request.user).filter(pk=service.pk).exists():
            self.permission_denied(self.request)
        return service

    def service_check(self) -> Any:
        return partial(endpoints.check, user=self.request.user) if self.action == "create" else None

    def create_object(self, **values: Any) -> Service:
        return endpoints.create(user=self.request.user, **values)

    def change_object(self, service: Service, **values: Any) -> Service:
        current = {"description": service.description, "visibility": service.visibility}
        return endpoints.edit(service=service, **{**current, **values})

    def delete_object(self, service: Service) -> None:
        endpoints.delete(service=service, by=self.request.user)

    @object_action(ServiceModelIn, status=202, url_path="model", url_name="model")
    def change_model(self, service: Service, model_version: ModelVersion) -> Service:
        """Serve another version: its server starts next to the current one, and takes over when it is ready."""
        return model_swaps.change_model(service=service, version=model_version, by=self.request.user)

    @object_action(status=202, once=True)
    def start(self, service: Service) -> Service:
        """Start a stopped service again, at the same address."""
        return endpoints.start(service=service, by=self.request.user)

    @object_action(status=202)
    def stop(self, service: Service) -> Service:
        """Request a stop; the address answers 410 until the service is started again."""
        return endpoints.stop(service=service, by=self.request.user)
