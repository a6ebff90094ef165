"""What the API of models does beyond reading and writing them: stages, aliases, history."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.idempotency import once
from aiplatform.objects.viewsets import object_action
from inference.registry import aliases, history, stages, version_tables
from inference.registry import lineage as lineages
from inference.registry.models import Model, ModelVersion
from inference.registry.version_serializers import ActOut, AliasIn, AliasOut, LineageOut, StageIn, VersionTableOut

if TYPE_CHECKING:
    from aiplatform.lib.api import NumberedViewSet as Base
else:
    Base = object


class ModelActs(Base):
    """Acts on a model: its aliases and its history."""

    def own_model(self, pk: str) -> Model:
        """Return the caller's own model: 404 when they may not see it, 403 when they may only see it."""
        model: Model = get_object_or_404(Model.objects.visible_to(self.request.user), pk=pk)
        if not Model.objects.editable_by(self.request.user).filter(pk=model.pk).exists():
            self.permission_denied(self.request)
        return model

    @extend_schema(request=AliasIn, responses=AliasOut)
    @action(detail=True, methods=["post"], url_path="aliases")
    @once
    def set_alias(self, request: ApiRequest, pk: str) -> Response:
        """Let an alias stand for a version of the model; one that is there moves, in one step."""
        model = self.own_model(pk)
        context = {**self.get_serializer_context(), "model": model}
        serializer = AliasIn(data=request.data, context=context)
        serializer.is_valid(raise_exception=True)
        alias = aliases.assign(by=request.user, **serializer.validated_data)
        return Response(AliasOut(alias).data)

    @extend_schema(responses={204: None})
    @action(detail=True, methods=["delete"], url_path=r"aliases/(?P<name>[a-z][a-z0-9._-]{0,49})")
    def remove_alias(self, request: ApiRequest, pk: str, name: str) -> Response:
        """Take an alias away; its version stays."""
        aliases.remove(model=self.own_model(pk), name=name, by=request.user)
        return Response(status=204)

    @extend_schema(responses=ActOut(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def history(self, request: ApiRequest, pk: str) -> Response:
        """Who did what to the model, newest first; the newest 200."""
        model = get_object_or_404(Model.objects.visible_to(request.user), pk=pk)
        return Response(ActOut(history.list_entries(model), many=True).data)

    @extend_schema(
        parameters=[
            OpenApiParameter("version", int, many=True, description="Numbers; the newest four in use unless given."),
            OpenApiParameter("base", int, description="What the others are measured against; the last unless given."),
        ],
        responses=VersionTableOut,
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def comparison(self, request: ApiRequest, pk: str) -> Response:
        """Versions of the model fact by fact: what they are, cost, reached, and were trained with."""
        model, query = get_object_or_404(Model.objects.visible_to(request.user), pk=pk), request.query_params
        versions, base = version_tables.select_versions(
            model, queries.read_ints(query, "version"), queries.read_int(query, "base")
        )
        rows = [dataclasses.asdict(row) for row in version_tables.rows(versions, base)]
        numbers = [version.number for version in versions]
        return Response({"versions": numbers, "base": base.number, "rows": rows})


class VersionActs(Base):
    """Acts on one version: its stage."""

    @object_action(StageIn, once=True, url_path="stage")
    def move_stage(self, version: ModelVersion, stage: str, reason: str) -> ModelVersion:
        """Move the version to another stage: candidate, approved or archived, with the reason."""
        return stages.move(version=version, to=stage, by=self.request.user, reason=reason)

    @extend_schema(responses=LineageOut)
    @action(detail=True, methods=["get"])
    def lineage(self, request: ApiRequest, pk: str) -> Response:
        """Where the version came from and what came of it, as far as you may see."""
        version: Any = self.get_object()
        return Response(lineages.as_json(lineages.build_graph(version, request.user)))
