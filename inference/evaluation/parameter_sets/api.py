"""`evaluation-sets/`: parameters of evaluations under a name."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import DestroyModelMixin, ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, StrictMixin, VisibleField, parse_request
from aiplatform.lib.idempotency import once
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion, Upload
from inference.evaluation import requests, saved_parameters
from inference.evaluation.custom_scripts import scripts
from inference.evaluation.models import Evaluation, EvaluationSet
from inference.evaluation.orders import EVALUATION_SETS
from inference.kit.task_kinds import TASKS
from training.programs import script as command_lines
from training.programs.models import CodeSnapshot
from workers.images.models import Image


class EvaluationSetOut(OutMixin, serializers.ModelSerializer):
    """A set; evaluations use it by their `parameter_set`."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    dataset = serializers.CharField(source="version_label", read_only=True)
    task = serializers.CharField(read_only=True)
    params = serializers.SerializerMethodField()
    arguments = serializers.SerializerMethodField()
    code_origin = serializers.CharField(source="code.origin", read_only=True, default="")
    image_name = serializers.CharField(source="image_label", read_only=True)

    class Meta:
        model = EvaluationSet
        fields = [
            "id", "name", "owner", "description", "visibility", "task", "version", "dataset", "split", "params",
            "code", "code_origin", "start_file", "arguments", "output_path", "image", "image_name",
            "device_kind", "device_model", "gpus_per_node", "cpus", "created_at", "updated_at",
        ]  # fmt: skip

    def get_params(self, row: EvaluationSet) -> dict[str, Any]:
        return scripts.shown_params(row)

    def get_arguments(self, row: EvaluationSet) -> str:
        return command_lines.shown(row.arguments)


class EvaluationSetChangeIn(StrictMixin, serializers.Serializer):
    """What is to be other; what is left out stays."""

    name = serializers.CharField(max_length=saved_parameters.MAX_NAME, validators=[TITLE], required=False)
    description = serializers.CharField(max_length=200, required=False, allow_blank=True)
    visibility = serializers.ChoiceField(EvaluationSet.Visibility.choices, required=False)
    version = VisibleField(
        DatasetVersion, to_use=True, required=False, allow_null=True,
        help_text="null: whoever begins with the set names one.",
    )  # fmt: skip
    split = serializers.CharField(max_length=10, required=False, allow_blank=True, help_text="As evaluations have it.")
    params = serializers.DictField(required=False, help_text="As evaluations have them.")
    code = VisibleField(CodeSnapshot, required=False, allow_null=True, help_text="Of an own script; null: none.")
    code_upload = VisibleField(Upload, required=False, help_text="Or the id of a finished upload.")
    home_path = serializers.CharField(max_length=255, required=False, help_text="Or a folder in your home.")
    start_file = serializers.CharField(
        max_length=255, required=False, allow_blank=True, help_text="Empty: ours judges."
    )
    arguments = serializers.CharField(max_length=2000, required=False, allow_blank=True)
    output_path = serializers.CharField(max_length=255, required=False, allow_blank=True)
    image = VisibleField(Image, to_use=True, required=False, allow_null=True)
    device_kind = serializers.CharField(max_length=8, required=False)
    device_model = serializers.CharField(max_length=100, required=False, allow_blank=True)
    gpus_per_node = serializers.IntegerField(min_value=0, max_value=128, required=False)
    cpus = serializers.FloatField(min_value=0.1, max_value=saved_parameters.MOST_CORES, required=False)


class EvaluationSetIn(EvaluationSetChangeIn):
    """A new set: what an evaluation was begun with, or what is given; what is given goes before."""

    name = serializers.CharField(max_length=saved_parameters.MAX_NAME, validators=[TITLE])
    evaluation = VisibleField(Evaluation, required=False, help_text="Whose parameters are kept.")
    task = serializers.CharField(
        max_length=15, required=False, help_text=f"Of the models; without `evaluation`. One of {', '.join(TASKS)}."
    )


class EvaluationSetViewSet(ListModelMixin, RetrieveModelMixin, DestroyModelMixin, NumberedViewSet):
    """Evaluation parameter sets. `?search=` finds by name, description, dataset or task."""

    needs = {
        "list": Action.EVALUATIONS_VIEW,
        "retrieve": Action.EVALUATIONS_VIEW,
        "create": Action.EVALUATIONS_SUBMIT,
        "partial_update": Action.EVALUATIONS_SUBMIT,
        "destroy": Action.EVALUATIONS_SUBMIT,
    }
    asks = {"list": ("search",)}
    orders = EVALUATION_SETS
    serializer_class = EvaluationSetOut
    queryset = EvaluationSet.objects.none()

    def get_queryset(self) -> Any:
        if self.action in ("partial_update", "destroy"):
            return EvaluationSet.objects.editable_by(self.request.user)
        terms = queries.read_filters(self.request).get("search", "")[:100]
        return EvaluationSet.objects.visible_to(self.request.user).for_list().named_like(terms)

    @extend_schema(request=EvaluationSetIn, responses={201: EvaluationSetOut})
    @once
    def create(self, request: ApiRequest) -> Response:
        """Keep parameters under a name."""
        serializer = EvaluationSetIn(data=request.data, context=self.get_serializer_context())
        fields = requests.with_snapshot(
            request.user, parse_request(serializer, saved_parameters.check_name, user=request.user)
        )
        evaluation = fields.pop("evaluation", None)
        values = saved_parameters.from_evaluation(evaluation) if evaluation is not None else {}
        return Response(
            EvaluationSetOut(saved_parameters.save(user=request.user, **(values | fields))).data, status=201
        )

    @extend_schema(request=EvaluationSetChangeIn, responses=EvaluationSetOut)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        """Change a set; evaluations that used it are unchanged."""
        row = self.get_object()
        serializer = EvaluationSetChangeIn(data=request.data, context=self.get_serializer_context())
        changed = requests.with_snapshot(
            request.user, parse_request(serializer, saved_parameters.check_name, user=request.user, existing=row)
        )
        fields = {"name": row.name} | changed
        return Response(EvaluationSetOut(saved_parameters.save(user=request.user, existing=row, **fields)).data)
