"""API of models and their versions."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from django.db import transaction
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.api import NumberedViewSet, PlatformViewSet, parse_request
from aiplatform.lib.idempotency import once, once_in_parts, store_response
from aiplatform.lib.zips import send_zip
from aiplatform.objects.viewsets import ChangeObject, DeleteObject, ObjectBase, ObjectViewSet
from inference.registry import (
    baselines,
    cards,
    hardware_speeds,
    import_requests,
    imports,
    model_jobs,
    packages,
)
from inference.registry import registration as registry
from inference.registry.composition.api import ComposeActs
from inference.registry.filters import ModelFilters
from inference.registry.import_trials.api import TrialActs
from inference.registry.models import Model, ModelTask, ModelVersion
from inference.registry.serializers import (
    HardwareSpeedOut,
    MeasureIn,
    MeasurementOut,
    ModelDetailOut,
    ModelEditIn,
    ModelIn,
    ModelOut,
    ModelTaskOut,
    ModelVersionOut,
    VersionIn,
)
from inference.registry.torch_export.api import TorchActs
from inference.registry.version_api import ModelActs, VersionActs


class ModelViewSet(ComposeActs, ModelActs, ChangeObject, DeleteObject, ObjectViewSet):
    """The registry. `?search=` finds by name and description.

    `?task=`, `?stage=` and `?alias=` leave models that have such a version, `?group=` those of members of a group.
    """

    view_permission, change_permission = Action.MODELS_VIEW, Action.MODELS_MANAGE
    needs = dict.fromkeys(("versions", "history", "comparison"), Action.MODELS_VIEW)
    asks = {"versions": ("limit", "cursor"), "comparison": ("version", "base")}
    asks_many = ("version",)
    serializer_class, list_serializer_class, change_serializer_class = ModelDetailOut, ModelOut, ModelEditIn
    filters = ModelFilters
    forbids_change = True

    @extend_schema(request=ModelIn, responses={201: ModelVersionOut, 202: ModelTaskOut})
    @once_in_parts
    def create(self, request: ApiRequest) -> Response:
        """Bring in a model.

        An archive of torch, and files that are large or take long to read, are read by a job. The task of that job is
        answered then (202, with its address in `Location`) in place of the version.
        """
        serializer = ModelIn(data=request.data, context=self.get_serializer_context())
        return _import_model(request, parse_request(serializer, imports.check, user=request.user))

    def change_object(self, model: Model, *, card: dict[str, str] | None = None, **values: Any) -> None:
        current = {"description": model.description, "visibility": model.visibility}
        with transaction.atomic():
            if card is not None:
                cards.write(model=model, by=self.request.user, card=card)
            registry.edit(model=model, by=self.request.user, **{**current, **values})

    def delete_object(self, model: Model) -> None:
        registry.delete(model=model, by=self.request.user)

    @extend_schema(responses=ModelVersionOut(many=True))
    @action(detail=True, methods=["get"])
    def versions(self, request: ApiRequest, pk: str) -> Response:
        model = get_object_or_404(Model.objects.visible_to(request.user), pk=pk)
        page = self.paginate_queryset(ModelVersion.objects.visible_to(request.user).filter(model=model).for_list())
        return self.get_paginated_response(ModelVersionOut(page, many=True).data)

    @extend_schema(request=VersionIn, responses={201: ModelVersionOut, 202: ModelTaskOut})
    @versions.mapping.post
    @once_in_parts
    def add_version(self, request: ApiRequest, pk: str) -> Response:
        """Bring in a further version; where a job reads the files, its task is answered (202), see models/."""
        model = self.own_model(pk)
        return _import_model(request, _validate(VersionIn, self, request) | {"model": model})


class ModelVersionViewSet(TorchActs, VersionActs, DeleteObject, RetrieveModelMixin, ObjectBase):
    """One version: read, download, move to another stage, delete."""

    view_permission, change_permission = Action.MODELS_VIEW, Action.MODELS_MANAGE
    needs = {
        **dict.fromkeys(("torch", "lineage", "download", "package", "measurements", "hardware"), Action.MODELS_VIEW),
        **dict.fromkeys(("measure", "baseline"), Action.EVALUATIONS_SUBMIT),
    }
    serializer_class = ModelVersionOut
    reach = dict.fromkeys(("measure", "baseline", "export_torch"), "usable_by")
    forbids_change = True

    def delete_object(self, version: ModelVersion) -> None:
        registry.delete_version(version=version, by=self.request.user)

    @extend_schema(responses={(200, "application/zip"): bytes})
    @action(detail=True, methods=["get"])
    def download(self, request: ApiRequest, pk: str) -> HttpResponseBase:
        """All files of the version as one zip."""
        version = self.get_object()
        files = [(entry["name"], version.path, entry["name"]) for entry in version.files]
        return send_zip(request._request, files, f"{version.model.name}_v{version.number}.zip")

    @extend_schema(responses={(200, "application/zip"): bytes})
    @action(detail=True, methods=["get"])
    def package(self, request: ApiRequest, pk: str) -> HttpResponseBase:
        """A zip that answers pictures by one command: the model, labels, run.py, checksums; no platform needed."""
        version = self.get_object()
        return send_zip(request._request, packages.entries(version, by=request.user), packages.filename(version))

    @extend_schema(responses=MeasurementOut(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def measurements(self, request: ApiRequest, pk: str) -> Response:
        """How fast the version answered when it was measured, newest first."""
        rows = model_jobs.measurements(self.get_object(), request.user)
        return Response(MeasurementOut(rows, many=True).data)

    @extend_schema(request=MeasureIn, responses={202: ModelTaskOut})
    @measurements.mapping.post
    @once
    def measure(self, request: ApiRequest, pk: str) -> Response:
        """Queue a measurement of how fast the version answers, on processor cores or on a card."""
        version = self.get_object()
        task = model_jobs.measure(user=request.user, version=version, **_validate(MeasureIn, self, request))
        return Response(ModelTaskOut(task).data, status=202)

    @extend_schema(responses=HardwareSpeedOut(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def hardware(self, request: ApiRequest, pk: str) -> Response:
        """How fast the version answers on each kind of hardware, edge devices and nodes alike, the fastest first."""
        return Response(HardwareSpeedOut(hardware_speeds.for_version(self.get_object()), many=True).data)

    @extend_schema(request=None, responses={202: ModelTaskOut})
    @action(detail=True, methods=["post"])
    @once
    def baseline(self, request: ApiRequest, pk: str) -> Response:
        """Queue the count of the images that the version learned from, which services are compared with."""
        task = baselines.learn(user=request.user, version=self.get_object())
        return Response(ModelTaskOut(task).data, status=202)


class ModelTaskViewSet(TrialActs, RetrieveModelMixin, NumberedViewSet):
    """Jobs about models: what became of a measurement, of an archive of torch, or of a model tried on pictures."""

    needs: ClassVar[dict[str, Action]] = TrialActs.acts | {"retrieve": Action.MODELS_VIEW}
    serializer_class = ModelTaskOut
    queryset = ModelTask.objects.none()

    def get_queryset(self) -> Any:
        return ModelTask.objects.visible_to(self.request.user).select_related("job__owner", "job__cluster")


def _import_model(request: ApiRequest, fields: dict[str, Any]) -> Response:
    """Make what was sent, or named, a version; or queue the job that will."""
    declared = import_requests.pop_declared(fields)
    with import_requests.open_source(request.user, fields, declared) as source:
        made = imports.import_model(
            user=request.user, brought=source, declared=declared, made=partial(_store_response, request),
            queued=partial(_queued, request), **fields,
        )  # fmt: skip
        return _answer(made)


def _answer(made: ModelVersion | ModelTask) -> Response:
    if isinstance(made, ModelTask):
        location = reverse("api-model-task-detail", args=[made.pk])
        return Response(ModelTaskOut(made).data, status=202, headers={"Location": location})
    return Response(ModelVersionOut(made).data, status=201)


def _store_response(request: Request, version: ModelVersion) -> None:
    store_response(request, _answer(version))


def _queued(request: Request, task: ModelTask) -> None:
    store_response(request, _answer(task))


def _validate(serializer: Any, view: PlatformViewSet, request: Request) -> dict[str, Any]:
    serializer_in = serializer(data=request.data, context=view.get_serializer_context())
    serializer_in.is_valid(raise_exception=True)
    checked: dict[str, Any] = serializer_in.validated_data
    return checked
