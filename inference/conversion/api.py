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
from aiplatform.objects.viewsets import CreateObject, ObjectViewSet, object_action
from datasets.models import DatasetVersion
from inference.conversion import conversions, results
from inference.conversion.converter import variant_catalog as known
from inference.conversion.filters import ConversionFilters
from inference.conversion.models import Conversion, ConvertedVariant
from inference.registry.serializers import JobFields, ModelVersionOut
from inference.registry.training_data import AUTO
from inference.registry.version_serializers import VersionField
from workers.jobs import actions
from workers.jobs.api.progress_fields import PROGRESS
from workers.jobs.api.resource_request import ResourcesIn


class ConvertedVariantOut(OutMixin, serializers.ModelSerializer):
    """A variant: accepted, refused (it loses too much) or failed; and the version that it became."""

    class Meta:
        model = ConvertedVariant
        fields = ["target", "state", "figures", "made"]


class ConversionOut(OutMixin, JobFields, serializers.ModelSerializer):
    """A conversion; `variants` is empty until it has ended."""

    name = serializers.CharField(source="job.name", read_only=True)
    owner = serializers.CharField(source="job.owner.username", read_only=True)
    model_version: Any = serializers.PrimaryKeyRelatedField(source="version", read_only=True)
    model = serializers.CharField(source="model_label", read_only=True)
    version: Any = serializers.PrimaryKeyRelatedField(source="data", read_only=True)
    dataset = serializers.CharField(source="data_label", read_only=True)
    variants = ConvertedVariantOut(many=True, read_only=True)
    created_at = serializers.DateTimeField(source="job.created_at", read_only=True)
    ended_at = serializers.DateTimeField(source="job.ended_at", read_only=True)

    class Meta:
        model = Conversion
        fields = [
            "id", "name", "owner", "job", "state", "published", "sentence", "wait_sentence", *PROGRESS,
            "model", "model_version", "dataset", "version", "split", "params", "fastest", "variants", "created_at",
            "ended_at",
        ]  # fmt: skip


class ConversionIn(ResourcesIn):
    """A new conversion: model, variants, data, resources.

    `split` and `calibrate_on` are splits of the dataset version, or "auto"; "" takes all images.
    """

    model_version = VersionField(to_use=True)
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
    name = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)
    nodes = None  # type: ignore[assignment]  # takes the inherited field away, as DRF has it
    gpus_per_node = serializers.IntegerField(min_value=0, max_value=1, required=False, default=0)


class KeepIn(StrictMixin, serializers.Serializer):
    """Which variant becomes a version."""

    target = serializers.CharField(max_length=20, help_text=f"One of {', '.join(known.TARGETS)}.")


class ConversionViewSet(CreateObject, ObjectViewSet):
    """Conversions. `?state=` filters (a state, or waiting, running, completed, failed, stopped), `?search=` finds."""

    view_permission, change_permission = Action.MODELS_VIEW, Action.MODELS_MANAGE
    needs = {"results": Action.MODELS_VIEW}
    serializer_class, create_serializer_class = ConversionOut, ConversionIn
    filters = ConversionFilters
    forbids_change = True

    def service_check(self) -> Any:
        return partial(conversions.check, user=self.request.user)

    def create_object(self, **values: Any) -> Conversion:
        return conversions.submit(user=self.request.user, **values)

    @object_action(status=202)
    def stop(self, conversion: Conversion) -> None:
        """Request a stop."""
        actions.stop(conversion.job, by=self.request.user)

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
