"""`training/outputs`: datasets of what jobs left."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.api import PlatformViewSet, VisibleField
from aiplatform.lib.idempotency import once
from datasets.api.serializers import ReadingIn
from datasets.models import Import
from datasets.services.datasets import NAME_MAX
from training.runs import output_datasets
from workers.core.models import Job


class OutputDatasetIn(ReadingIn):
    """A job that is over, and what of its outputs becomes a dataset."""

    job = VisibleField(Job)
    name = serializers.CharField(
        max_length=NAME_MAX, default="", allow_blank=True, help_text="If empty, the name of the job."
    )
    folder = serializers.CharField(max_length=500, default="", allow_blank=True, help_text="If empty, all outputs.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return self.reading(attrs) | attrs


class OutputDatasetOut(serializers.ModelSerializer[Import]):
    """The import on its way; it commits by itself unless its report forbids that."""

    dataset_name = serializers.CharField(source="dataset.name")

    class Meta:
        model = Import
        fields = ("id", "dataset", "dataset_name", "state")


class OutputDatasetViewSet(PlatformViewSet):
    needs = {"create": Action.DATASETS_CREATE}
    serializer_class = OutputDatasetOut

    @extend_schema(request=OutputDatasetIn, responses={201: OutputDatasetOut})
    @once
    def create(self, request: ApiRequest) -> Response:
        """Import the outputs of a job as a new dataset."""
        serializer = OutputDatasetIn(data=request.data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        made = output_datasets.make(by=request.user, **serializer.validated_data)
        return Response(OutputDatasetOut(made).data, status=201)
