"""`/api/v1/environments/`: the same services as the pages. Log and controls are under `/api/v1/jobs/{id}/`."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.api import parse_request
from aiplatform.lib.idempotency import once
from aiplatform.objects.viewsets import DeleteObject, object_action
from training.environments import actions, lifecycle
from training.environments.filters import EnvironmentFilters
from training.environments.models import Environment
from training.environments.request_schema import SCHEMA
from training.environments.serializers import EnvironmentIn, EnvironmentOut, MoreIn, MoreOut
from training.programs.api import ProgramViewSet


class EnvironmentViewSet(DeleteObject, ProgramViewSet):
    request_schema, filters = SCHEMA, EnvironmentFilters
    serializer_class, create_serializer_class = EnvironmentOut, EnvironmentIn
    needs = dict.fromkeys(("mark_needed", "extend", "destroy"), Action.JOBS_CONTROL)

    def get_queryset(self) -> Any:
        return super().get_queryset().not_deleted()

    def get_object(self) -> Any:
        environment = super().get_object()
        return lifecycle.see_ready(environment) if self.action == "retrieve" else environment

    def delete_object(self, environment: Environment) -> None:
        """The home and the record of its job stay."""
        actions.delete(environment, by=self.request.user)

    @object_action(url_path="keep", url_name="keep")
    def mark_needed(self, environment: Environment) -> None:
        """Mark the workspace as still needed: its idle time starts again."""
        actions.mark_needed(environment, by=self.request.user)

    @extend_schema(request=MoreIn, responses={200: MoreOut})
    @action(detail=True, methods=["post"])
    @once
    def extend(self, request: ApiRequest, pk: str) -> Response:
        """Extend the run time, up to the limit of the cluster; beyond it, the cluster's managers decide."""
        data = parse_request(MoreIn(data=request.data))
        return Response({"granted": actions.extend(self.get_object(), hours=data["hours"], by=request.user)})
