"""`training/planned`: upload and train in one act."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, VisibleField, parse_request
from aiplatform.lib.idempotency import once_in_parts, store_response
from datasets.models import Upload
from training.programs.serializers import CODE_FIELDS
from training.runs import drafts, planned
from training.runs.models import PlannedTraining
from training.runs.serializers import TrainingIn

ABSENT = ("version", "eval_version", "datasets", "code", *CODE_FIELDS)


class PlannedIn(TrainingIn):
    """A training of a preset, with a complete upload in place of a dataset and of code."""

    upload = VisibleField(Upload)
    dataset = serializers.CharField(
        max_length=25, default="", allow_blank=True, help_text="Name of the new dataset; of the file when left out."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        extra_fields = [name for name in ABSENT if attrs.get(name)]
        if extra_fields:
            message = _("A training on an upload accepts no other data and no code. Remove this.")
            raise serializers.ValidationError({name: [message] for name in extra_fields})
        return super().validate(attrs)


class PlannedOut(OutMixin, serializers.ModelSerializer):
    name = serializers.CharField(source="__str__")
    owner = serializers.CharField(source="owner.username")
    sentence = serializers.CharField(source="message")
    dataset = serializers.CharField(source="dataset_name")
    dataset_id = serializers.IntegerField(allow_null=True)
    import_state = serializers.CharField(source="data_import.state", default="", help_text="How far the data is.")
    training = serializers.IntegerField(source="training_id", allow_null=True, help_text="Once it was started.")

    class Meta:
        model = PlannedTraining
        fields = [
            "id", "name", "owner", "state", "sentence", "dataset", "dataset_id", "import_state", "training",
            "created_at",
        ]  # fmt: skip
        read_only_fields = fields


class PlannedViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    needs = {
        "list": Action.TRAINING_VIEW,
        "retrieve": Action.TRAINING_VIEW,
        "create": Action.TRAINING_SUBMIT,
        "retry": Action.TRAINING_SUBMIT,
        "cancel": Action.TRAINING_SUBMIT,
    }
    serializer_class = PlannedOut

    def get_queryset(self) -> Any:
        return PlannedTraining.objects.visible_to(self.request.user).select_related("owner", "data_import")

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        planned.nudge_if_due(row)
        return Response(PlannedOut(row).data)

    @extend_schema(request=PlannedIn, responses={201: PlannedOut})
    @once_in_parts
    def create(self, request: ApiRequest) -> Response:
        """Import the upload as a new dataset, and train on it automatically once it is ready."""
        request.user.require(Action.DATASETS_CREATE)
        data = parse_request(PlannedIn(data=request.data, context=self.get_serializer_context()), drafts.check_parts)
        upload, name = data.pop("upload"), data.pop("dataset")
        training_request = drafts.TrainingRequest(
            **{field: value for field, value in data.items() if field not in ABSENT}
        )
        with transaction.atomic():
            row = planned.plan(user=request.user, request=training_request, upload_id=upload.pk, dataset_name=name)
            return store_response(request, Response(PlannedOut(row).data, status=201))

    @extend_schema(request=None, responses=PlannedOut)
    @action(detail=True, methods=["post"])
    def retry(self, request: ApiRequest, pk: str) -> Response:
        """Try a failed one again, on what its dataset holds now."""
        return Response(PlannedOut(planned.retry(self.get_object())).data)

    @extend_schema(request=None, responses=PlannedOut)
    @action(detail=True, methods=["post"])
    def cancel(self, request: ApiRequest, pk: str) -> Response:
        """Give it up; its data stays."""
        return Response(PlannedOut(planned.cancel(self.get_object())).data)
