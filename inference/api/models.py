"""API of models and their versions."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from django.db import transaction
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.http import ApiRequest
from accounts.permissions import Action
from aiplatform.lib import queries
from aiplatform.lib.api import NumberedViewSet, PlatformViewSet, sent
from aiplatform.lib.errors import Invalid
from aiplatform.lib.idempotency import keep, once_in_parts
from aiplatform.lib.zips import send_zip
from inference import model_tasks
from inference.api.registry import ModelActs, VersionActs
from inference.api.serializers import ModelDetailOut, ModelEditIn, ModelIn, ModelOut, ModelVersionOut, VersionIn
from inference.models import Model, ModelVersion, Stage
from inference.orders import MODELS
from inference.services import cards, packaging
from inference.services import models as registry
from inference.services.bytes import on_disk


class ModelViewSet(ModelActs, ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """The registry. `?search=` finds by name and description.

    `?task=`, `?stage=` and `?alias=` leave models that have such a version, `?group=` those of people in a group.
    """

    needs = ModelActs.acts | {
        "list": Action.MODELS_VIEW,
        "retrieve": Action.MODELS_VIEW,
        "versions": Action.MODELS_VIEW,
        "create": Action.MODELS_MANAGE,
        "add_version": Action.MODELS_MANAGE,
        "partial_update": Action.MODELS_MANAGE,
        "destroy": Action.MODELS_MANAGE,
    }
    asks = {
        "list": ("search", "task", "stage", "alias", "group"),
        "versions": ("limit", "cursor"),
        "comparison": ("version", "base"),
    }
    asks_many = ("version",)
    serializer_class = ModelOut
    queryset = Model.objects.none()
    orders = MODELS

    def get_queryset(self) -> Any:
        rows = Model.objects.visible_to(self.request.user).for_list()
        if self.action != "list":
            return rows
        given = queries.given(self.request)
        narrowed = rows.narrowed(
            task=queries.one_of(given, "task", *(name for name, _word in model_tasks.choices())),
            stage=queries.one_of(given, "stage", *Stage.values),
            alias=given.get("alias", ""),
            group=queries.whole(given, "group"),
        )
        return narrowed.named_like(given.get("search", ""))

    def get_serializer_class(self) -> Any:
        return ModelDetailOut if self.action in ("retrieve", "partial_update") else ModelOut

    @extend_schema(request=ModelIn, responses={201: ModelVersionOut})
    @once_in_parts
    def create(self, request: ApiRequest) -> Response:
        serializer = ModelIn(data=request.data, context=self.get_serializer_context())
        fields = sent(serializer, registry.check_name, user=request.user)
        with _bytes(fields) as (archive, filename):
            version = registry.register_upload(
                user=request.user, archive=archive, filename=filename, made=partial(_kept, request), **fields
            )
        return _answer(version)

    @extend_schema(request=ModelEditIn, responses=ModelDetailOut)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        model = self.own_model(pk)
        fields = _checked(ModelEditIn, self, request)
        card = fields.pop("card", None)
        known = {"description": model.description, "visibility": model.visibility}
        with transaction.atomic():
            if card is not None:
                cards.write(model=model, by=request.user, card=card)
            registry.edit(model=model, by=request.user, **{**known, **fields})
        return Response(ModelDetailOut(self.get_queryset().get(pk=pk)).data)

    def destroy(self, request: ApiRequest, pk: str) -> Response:
        registry.delete(model=self.own_model(pk), by=request.user)
        return Response(status=204)

    @extend_schema(responses=ModelVersionOut(many=True))
    @action(detail=True, methods=["get"])
    def versions(self, request: ApiRequest, pk: str) -> Response:
        model = get_object_or_404(Model.objects.visible_to(request.user), pk=pk)
        page = self.paginate_queryset(
            ModelVersion.objects.visible_to(request.user)
            .filter(model=model)
            .select_related("model")
            .prefetch_related("aliases")
        )
        return self.get_paginated_response(ModelVersionOut(page, many=True).data)

    @extend_schema(request=VersionIn, responses={201: ModelVersionOut})
    @versions.mapping.post
    @once_in_parts
    def add_version(self, request: ApiRequest, pk: str) -> Response:
        model = self.own_model(pk)
        fields = _checked(VersionIn, self, request)
        with _bytes(fields) as (archive, filename):
            version = registry.register_upload(
                user=request.user, archive=archive, filename=filename, model=model, made=partial(_kept, request)
            )
        return _answer(version)


class ModelVersionViewSet(VersionActs, RetrieveModelMixin, NumberedViewSet):
    """One version: read, download, move to another stage, delete."""

    needs = VersionActs.acts | {
        "retrieve": Action.MODELS_VIEW,
        "download": Action.MODELS_VIEW,
        "package": Action.MODELS_VIEW,
        "destroy": Action.MODELS_MANAGE,
    }
    serializer_class = ModelVersionOut
    queryset = ModelVersion.objects.none()

    def get_queryset(self) -> Any:
        rows = ModelVersion.objects.visible_to(self.request.user)
        return rows.select_related("model__owner").prefetch_related("aliases")

    def destroy(self, request: ApiRequest, pk: str) -> Response:
        registry.delete_version(version=self.own_version(), by=request.user)
        return Response(status=204)

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
        return send_zip(request._request, packaging.entries(version), packaging.filename(version))


def _answer(version: ModelVersion) -> Response:
    return Response(ModelVersionOut(version).data, status=201)


def _kept(request: Request, version: ModelVersion) -> None:
    keep(request, _answer(version))


def _checked(serializer: Any, view: PlatformViewSet, request: Request) -> dict[str, Any]:
    serializer_in = serializer(data=request.data, context=view.get_serializer_context())
    serializer_in.is_valid(raise_exception=True)
    checked: dict[str, Any] = serializer_in.validated_data
    return checked


def _bytes(fields: dict[str, Any]) -> AbstractContextManager[tuple[Path, str]]:
    """The sent file, or the finished upload that was named; taken out of `fields`."""
    file, upload = fields.pop("file", None), fields.pop("upload", None)
    if (file is None) == (upload is None):
        raise Invalid(_("Send either a file or the id of a finished upload."), field="file")
    if file is not None:
        return on_disk(file)
    if upload.state == type(upload).State.OPEN:
        raise Invalid(_("This upload is not complete yet."), field="upload")
    return nullcontext((upload.file, upload.filename))
