"""Serializers of stages, aliases and history."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.models import AuditEntry
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField
from aiplatform.lib.errors import DomainError
from inference.registry import references, stages
from inference.registry.models import ModelAlias, ModelVersion, Stage


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class VersionField(VisibleField):
    """A version of the registry: its id, or words such as cells@champion, cells:2, alice/cells@champion."""

    def __init__(self, *, to_use: bool = False, **kwargs: Any) -> None:
        kwargs.setdefault("help_text", "The id of a version, or NAME@ALIAS, NAME:2, OWNER/NAME:2.")
        super().__init__(ModelVersion, to_use=to_use, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or data.isdecimal():
            return super().to_internal_value(data)
        try:
            return references.find(self.context["request"].user, data, to_use=self.to_use)
        except DomainError as exc:
            raise serializers.ValidationError(exc.message) from None


class StageIn(StrictMixin, serializers.Serializer):
    """Where a version goes, and why."""

    stage = serializers.ChoiceField(Stage.choices)
    reason = serializers.CharField(max_length=stages.MAX_REASON_LENGTH)


class AliasIn(StrictMixin, serializers.Serializer):
    """An alias, and the version of the model that it points at."""

    name = serializers.CharField(max_length=50)
    version = VersionField()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        model = self.context["model"]
        if attrs["version"].model_id != model.pk:
            raise serializers.ValidationError({"version": [_not_of(model)]})
        return attrs


class AliasOut(OutMixin, serializers.ModelSerializer):
    """An alias and its version."""

    number = serializers.IntegerField(source="version.number", read_only=True)

    class Meta:
        model = ModelAlias
        fields = ["name", "version", "number", "moved_at"]


class ActOut(OutMixin, serializers.ModelSerializer):
    """One act on a model: who did what, and the facts of it."""

    class Meta:
        model = AuditEntry
        fields = ["at", "actor", "verb", "facts"]


class LineageOut(serializers.Serializer):
    """A graph: nodes with a key each, and edges between keys with how one led to the other."""

    nodes = serializers.ListField(child=serializers.DictField())
    edges = serializers.ListField(child=serializers.DictField())
    cut = serializers.BooleanField(help_text="There is more than is given.")


def _not_of(model: Any) -> str:
    return _("This is not a version of %(model)s.") % {"model": model}


class VersionRowOut(serializers.Serializer[Any]):
    kind = serializers.CharField(help_text="about, cost, figure or param.")
    key = serializers.CharField()
    values = serializers.ListField(child=serializers.JSONField(allow_null=True))
    differs = serializers.BooleanField()
    differences = serializers.ListField(
        child=serializers.FloatField(allow_null=True), help_text="From the base, of numbers."
    )


class VersionTableOut(serializers.Serializer[Any]):
    versions = serializers.ListField(child=serializers.IntegerField())
    base = serializers.IntegerField()
    rows = VersionRowOut(many=True)
