"""API of conversions."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField, parse_request
from aiplatform.lib.errors import NotFound
from aiplatform.objects.viewsets import CreateObject
from datasets.models import DatasetVersion
from inference.conversion import conversions, results
from inference.conversion.converter import variant_catalog as known
from inference.conversion.filters import ConversionFilters
from inference.conversion.models import Conversion, ConvertedVariant
from inference.evaluation.jobs.api import JOB_FIELDS, ModelJobIn, ModelJobOut, ModelJobViewSet
from inference.registry.serializers import ModelVersionOut
from inference.registry.training_data import AUTO


class ConvertedVariantOut(OutMixin, serializers.ModelSerializer):
    """A variant: accepted, refused (it loses too much) or failed; and the version that it became."""

    class Meta:
        model = ConvertedVariant
        fields = ["target", "state", "figures", "made"]


class ConversionOut(ModelJobOut):
    """A conversion; `variants` is empty until it has ended."""

    version: Any = serializers.PrimaryKeyRelatedField(source="data", read_only=True)
    dataset = serializers.CharField(source="data_label", read_only=True)
    variants = ConvertedVariantOut(many=True, read_only=True)

    class Meta:
        model = Conversion
        fields = [
            *JOB_FIELDS, "model", "model_version", "dataset", "version", "split", "params", "fastest", "variants",
            "created_at", "ended_at",
        ]  # fmt: skip


class ConversionIn(ModelJobIn):
    """A new conversion: model, variants, data, resources.

    `split` and `calibrate_on` are splits of the dataset version, or "auto"; "" takes all images.
    """

    version = VisibleField(DatasetVersion, to_use=True)
    targets = serializers.ListField(
        child=serializers.CharField(max_length=20), required=False, default=list(known.DEFAULT_TARGETS), max_length=20,
        help_text=f"Variants: {', '.join(known.TARGETS)}.",
    )  # fmt: skip
    split = serializers.CharField(max_length=10, required=False, default=AUTO, allow_blank=True)
    calibrate_on = serializers.CharField(max_length=10, required=False, default=AUTO, allow_blank=True)
    looks = serializers.IntegerField(required=False, default=conversions.LOOKS, help_text="Images for calibration.")
    method = serializers.ChoiceField(known.METHODS, required=False, default=known.MINMAX)
    max_loss = serializers.FloatField(required=False, default=conversions.MAX_LOSS)
    keep = serializers.ChoiceField(conversions.KEEP_CHOICES, required=False, default=conversions.KEEP_FASTEST)
    nodes = None  # type: ignore[assignment]  # takes the inherited field away, as DRF has it


class KeepIn(StrictMixin, serializers.Serializer):
    """Which variant becomes a version."""

    target = serializers.CharField(max_length=20, help_text=f"One of {', '.join(known.TARGETS)}.")


class ConversionViewSet(CreateObject, ModelJobViewSet):
    """Conversions. `?state=` filters (a state, or waiting, running, completed, failed, stopped), `?search=` finds."""

    view_permission, change_permission = Action.MODELS_VIEW, Action.MODELS_MANAGE
    needs = {"results": Action.MODELS_VIEW}
    serializer_class, create_serializer_class = ConversionOut, ConversionIn
    filters = ConversionFilters

    def service_check(self) -> Any:
        return partial(conversions.check, user=self.request.user)

    def create_object(self, **values: Any) -> Conversion:
        return conversions.submit(user=self.request.user, **values)

    @extend_schema(request=KeepIn, responses=ModelVersionOut)
    @action(detail=True, methods=["post"])
    def keep(self, request: ApiRequest, pk: str) -> Response:
        """Promote a variant to a version of its model; returns the version if it was promoted before."""
        conversion = self.get_object()
        variant = conversion.variants.filter(target=parse_request(KeepIn(data=request.data))["target"]).first()
        if variant is None:
            raise NotFound(_("This conversion has no such variant, or has not completed."))
        return Response(ModelVersionOut(conversions.promote(variant=variant, by=request.user)).data)

    @extend_schema(responses=dict)
    @action(detail=True, methods=["get"])
    def results(self, request: ApiRequest, pk: str) -> Response:
        """All variants with figures, classes, differences of the outputs and times; also while it runs."""
        return Response(results.load(self.get_object()))
