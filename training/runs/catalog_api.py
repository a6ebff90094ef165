"""`training/presets` and `training/params`."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.api import PlatformViewSet, parse_request
from aiplatform.lib.errors import NotFound
from aiplatform.objects.viewsets import CreateObject, DeleteObject, ObjectViewSet
from training.presets.catalog import PRESETS
from training.runs import parameter_sets, parameters
from training.runs.filters import ParameterSetFilters
from training.runs.models import ParameterSet
from training.runs.serializers import ParameterSetIn, ParameterSetOut, ParameterSetVersionOut, PresetOut


class PresetViewSet(PlatformViewSet):
    needs = {"list": Action.TRAINING_VIEW, "retrieve": Action.TRAINING_VIEW}
    asks = {"list": ("search",)}
    pagination_class = None  # a handful
    serializer_class = PresetOut
    lookup_value_regex = "[a-z0-9_]+"
    queryset = ParameterSet.objects.none()  # presets are data of the code, not rows

    @extend_schema(responses=PresetOut(many=True))
    def list(self, request: Request) -> Response:
        return Response(PresetOut(parameters.presets_like(request.query_params.get("search", "")), many=True).data)

    def retrieve(self, request: Request, pk: str) -> Response:
        if pk not in PRESETS:
            raise NotFound(_("Preset not found."))
        return Response(PresetOut(PRESETS[pk]).data)


class ParameterSetViewSet(CreateObject, DeleteObject, ObjectViewSet):
    view_permission, change_permission = Action.TRAINING_VIEW, Action.TRAINING_SUBMIT
    needs = {"update": Action.TRAINING_SUBMIT, "versions": Action.TRAINING_VIEW}
    serializer_class, create_serializer_class = ParameterSetOut, ParameterSetIn
    filters = ParameterSetFilters

    def service_check(self) -> Any:
        return partial(parameter_sets.check_name, user=self.request.user)

    def create_object(self, **values: Any) -> ParameterSet:
        return parameter_sets.save(user=self.request.user, **values)

    def delete_object(self, row: ParameterSet) -> None:
        row.delete()

    @extend_schema(request=ParameterSetIn, responses=ParameterSetOut)
    def update(self, request: ApiRequest, pk: str) -> Response:
        """Change a set; parameters that differ become a new version."""
        target = {"user": request.user, "existing": self.get_object()}
        data = parse_request(ParameterSetIn(data=request.data), parameter_sets.check_name, **target)
        return Response(ParameterSetOut(parameter_sets.save(**data, **target)).data)

    @extend_schema(responses=ParameterSetVersionOut(many=True))
    @action(detail=True, pagination_class=None)
    def versions(self, request: ApiRequest, pk: str) -> Response:
        """Return all versions of the set, newest first."""
        rows = self.get_object().versions.select_related("made_by")
        return Response(ParameterSetVersionOut(rows, many=True).data)
