"""`evaluation-sets/`: parameters of evaluations under a name."""

from __future__ import annotations

from functools import partial
from typing import Any

from rest_framework import serializers

from accounts.access.permissions import Action
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField
from aiplatform.lib.titles import TITLE
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet
from datasets.models import DatasetVersion, Upload
from inference.evaluation import requests, saved_parameters
from inference.evaluation.custom_scripts import scripts
from inference.evaluation.filters import EvaluationSetFilters
from inference.evaluation.models import Evaluation, EvaluationSet
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
        help_text="null: chosen when an evaluation is started.",
    )  # fmt: skip
    split = serializers.CharField(max_length=10, required=False, allow_blank=True, help_text="As evaluations have it.")
    params = serializers.DictField(required=False, help_text="As evaluations have them.")
    code = VisibleField(CodeSnapshot, required=False, allow_null=True, help_text="Of an own script; null: none.")
    code_upload = VisibleField(Upload, required=False, help_text="Or the id of a finished upload.")
    home_path = serializers.CharField(max_length=255, required=False, help_text="Or a folder in your home.")
    start_file = serializers.CharField(
        max_length=255, required=False, allow_blank=True, help_text="If empty, the built-in evaluation."
    )
    arguments = serializers.CharField(max_length=2000, required=False, allow_blank=True)
    output_path = serializers.CharField(max_length=255, required=False, allow_blank=True)
    image = VisibleField(Image, to_use=True, required=False, allow_null=True)
    device_kind = serializers.CharField(max_length=8, required=False)
    device_model = serializers.CharField(max_length=100, required=False, allow_blank=True)
    gpus_per_node = serializers.IntegerField(min_value=0, max_value=128, required=False)
    cpus = serializers.FloatField(min_value=0.1, max_value=saved_parameters.MAX_CORES, required=False)


class EvaluationSetIn(EvaluationSetChangeIn):
    """A new set: what an evaluation was begun with, or what is given; what is given goes before."""

    name = serializers.CharField(max_length=saved_parameters.MAX_NAME, validators=[TITLE])
    evaluation = VisibleField(Evaluation, required=False, help_text="Whose parameters are kept.")
    task = serializers.CharField(
        max_length=15, required=False, help_text=f"Of the models; without `evaluation`. One of {', '.join(TASKS)}."
    )


class EvaluationSetViewSet(CreateObject, ChangeObject, DeleteObject, ObjectViewSet):
    """Evaluation parameter sets. `?search=` finds by name, description, dataset or task.

    A changed set leaves evaluations that used it unchanged.
    """

    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    serializer_class, create_serializer_class = EvaluationSetOut, EvaluationSetIn
    change_serializer_class = EvaluationSetChangeIn
    filters = EvaluationSetFilters

    def service_check(self) -> Any:
        row = self.get_object() if self.action == "partial_update" else None
        return partial(saved_parameters.check_name, user=self.request.user, existing=row)

    def create_object(self, evaluation: Evaluation | None = None, **fields: Any) -> EvaluationSet:
        values = saved_parameters.from_evaluation(evaluation) if evaluation is not None else {}
        return saved_parameters.save(
            user=self.request.user, **(values | requests.with_snapshot(self.request.user, fields))
        )

    def change_object(self, row: EvaluationSet, **fields: Any) -> EvaluationSet:
        values = {"name": row.name} | requests.with_snapshot(self.request.user, fields)
        return saved_parameters.save(user=self.request.user, existing=row, **values)

    def delete_object(self, row: EvaluationSet) -> None:
        row.delete()
