"""What the API of models does about composed versions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.http import ApiRequest
from aiplatform.lib.api import StrictMixin, VisibleField, parse_request
from aiplatform.lib.idempotency import once_in_parts, store_response
from aiplatform.lib.titles import TITLE
from inference.kit.model_io.spec import FUSION, MEAN, SUPPRESSION
from inference.kit.models.graph_json import MAX_PARTS
from inference.registry.composition import compatibility, composition
from inference.registry.models import Model, ModelVersion, Visibility
from inference.registry.serializers import ModelVersionOut
from inference.registry.version_serializers import VersionField

if TYPE_CHECKING:
    from aiplatform.lib.api import NumberedViewSet as Base
else:
    Base = object


class ComposeIn(StrictMixin, serializers.Serializer):
    """What a version is composed of, and how its parts answer together."""

    kind = serializers.ChoiceField(compatibility.KINDS)
    parts = serializers.ListField(
        child=VersionField(to_use=True), min_length=2, max_length=MAX_PARTS,
        help_text="Of an ensemble 2 to 5 versions; of a chain a detector, and a classifier or tagger.",
    )  # fmt: skip
    weights = serializers.ListField(
        child=serializers.FloatField(), required=False, max_length=MAX_PARTS,
        help_text="Of an ensemble's parts; all count alike when left out.",
    )  # fmt: skip
    way = serializers.ChoiceField(
        [MEAN, FUSION, SUPPRESSION], required=False,
        help_text="How an ensemble's answers are joined; the usual way of the task when left out.",
    )  # fmt: skip
    iou = serializers.FloatField(
        required=False, min_value=0, max_value=1, help_text="Overlap from which boxes are of one object."
    )
    margin = serializers.FloatField(
        required=False, min_value=0, max_value=1,
        help_text="Margin around each box, as a fraction of its sides; by default as in the training of the "
        "second model.",
    )  # fmt: skip
    min_score = serializers.FloatField(
        required=False, min_value=0, max_value=1, help_text="Boxes of a chain's detector below it are left out."
    )
    only = serializers.ListField(
        child=serializers.CharField(max_length=200), required=False, max_length=1000,
        help_text="Classes of the detector whose objects the second part looks at; all when left out.",
    )  # fmt: skip
    name = serializers.CharField(max_length=100, required=False, validators=[TITLE])
    description = serializers.CharField(max_length=500, required=False, allow_blank=True)
    visibility = serializers.ChoiceField(Visibility.choices, required=False)
    model = VisibleField(Model, required=False, help_text="Add a version to this model; you must own it.")


class ComposeActs(Base):
    """The action that composes a version of others, mixed into the actions on a model."""

    @extend_schema(request=ComposeIn, responses={201: ModelVersionOut})
    @action(detail=False, methods=["post"])
    @once_in_parts
    def compose(self, request: ApiRequest) -> Response:
        """Make a version that answers by others: an ensemble, or a detector with a classifier behind it."""
        fields: dict[str, Any] = parse_request(ComposeIn(data=request.data, context=self.get_serializer_context()))
        if (model := fields.get("model")) is not None:
            fields["model"] = self.own_model(str(model.pk))  # type: ignore[attr-defined]  # of ModelActs beside it
        version = composition.compose(user=request.user, made=partial(_store_response, request), **fields)
        return _answer(version)


def _answer(version: ModelVersion) -> Response:
    return Response(ModelVersionOut(version).data, status=201)


def _store_response(request: ApiRequest, version: ModelVersion) -> None:
    store_response(request, _answer(version))
