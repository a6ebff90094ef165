"""Serializers of evaluations."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from aiplatform.lib.api import VisibleField, by_field
from aiplatform.lib.errors import DomainError
from datasets.models import DatasetVersion
from inference.evaluation import saved_parameters
from inference.evaluation.custom_scripts.api import ScriptedOut, ScriptIn
from inference.evaluation.jobs.api import JOB_FIELDS, ModelJobIn, ModelJobOut
from inference.evaluation.models import Evaluation, EvaluationSet
from inference.evaluation.presentation import tiles
from inference.evaluation.results import manual_names


class EvaluationOut(ScriptedOut, ModelJobOut):
    """An evaluation; `metrics` are empty until it has ended."""

    model_version = None  # the column has this name
    dataset = serializers.CharField(source="version_label", read_only=True)
    started_at = serializers.DateTimeField(source="job.started_at", read_only=True)
    conditions = serializers.SerializerMethodField(
        help_text="Split and score threshold that precision, recall and F1 of `metrics` hold for; empty before the end."
    )
    figures = serializers.SerializerMethodField(
        help_text="Those of `metrics` that the manual names, by its names: Accuracy, Precision, Recall, Recall_5, mAP."
    )

    class Meta:
        model = Evaluation
        fields = [
            *JOB_FIELDS, "model", "model_version", "dataset", "version", "split", "task", "params", "script",
            "metrics", "figures", "conditions", "chosen_threshold", "created_at", "started_at", "ended_at",
        ]  # fmt: skip

    def get_conditions(self, evaluation: Evaluation) -> str:
        return tiles.conditions(evaluation, evaluation.metrics)

    def get_figures(self, evaluation: Evaluation) -> dict[str, float]:
        return manual_names(evaluation.task, evaluation.metrics)


class EvaluationIn(ScriptIn, ModelJobIn):
    """A new evaluation: model, data, resources; `params` of our evaluator, or of an own script.

    `split` is one of the version's; "" takes all images, "unseen" those that the model did not learn from, "auto" the
    first there is of test, val, unseen.
    """

    version = VisibleField(DatasetVersion, to_use=True, required=False, help_text="Left out: that of the set.")
    parameter_set = VisibleField(
        EvaluationSet,
        to_use=True,
        required=False,
        allow_null=True,
        default=None,
        help_text="What is left out of the request is taken from it.",
    )
    split = serializers.CharField(max_length=10, required=False, default="", allow_blank=True)
    params = serializers.DictField(required=False, default=dict)
    nodes = None  # type: ignore[assignment]  # takes the inherited field away, as DRF has it
    gpus_per_node = serializers.IntegerField(min_value=0, max_value=128, required=False, default=0)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        chosen = attrs.pop("parameter_set")
        if chosen is None:
            if attrs.get("version") is None:
                raise serializers.ValidationError({"version": [_("Specify a dataset version, or a parameter set.")]})
            return attrs
        left_out = set(saved_parameters.REQUEST_FIELDS) - set(self.initial_data)
        named = {name: value for name, value in attrs.items() if name not in left_out}
        try:
            return attrs | saved_parameters.submission_fields(chosen, named, user=self.context["request"].user)
        except DomainError as exc:
            raise serializers.ValidationError(by_field(exc)) from None
