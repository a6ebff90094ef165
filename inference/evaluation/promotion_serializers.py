"""Serializers of promotion rules."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField
from aiplatform.lib.message_field import MessageOut
from datasets.models import DatasetVersion
from inference.evaluation.models import PromotionRule, PromotionVerdict


class RuleIn(StrictMixin, serializers.Serializer):
    """What an evaluation must show, and what its version gets: an alias, the stage approved, or both."""

    metric = serializers.CharField(max_length=50)
    bound = serializers.FloatField()
    at_least = serializers.BooleanField(required=False, default=True, help_text="False: at most, as for losses.")
    version = VisibleField(DatasetVersion, to_use=True, help_text="The dataset version that was measured on.")
    split = serializers.CharField(max_length=10, required=False, default="", allow_blank=True)
    better_than = serializers.CharField(max_length=50, required=False, default="", allow_blank=True)
    gives_alias = serializers.CharField(max_length=50, required=False, default="", allow_blank=True)
    gives_stage = serializers.CharField(
        max_length=9, required=False, default="", allow_blank=True, help_text="approved, or empty for none."
    )


class VerdictOut(OutMixin, serializers.ModelSerializer):
    """The verdict of a rule on an evaluation."""

    message = MessageOut(read_only=True)
    sentence = serializers.CharField(source="message", read_only=True)

    class Meta:
        model = PromotionVerdict
        fields = ["evaluation", "promoted", "message", "sentence", "at"]


class PromotionRuleOut(OutMixin, serializers.ModelSerializer):
    """A promotion rule with its ten newest verdicts."""

    verdicts = serializers.SerializerMethodField()

    class Meta:
        model = PromotionRule
        fields = [
            "id", "metric", "bound", "at_least", "version", "version_label", "split", "better_than", "gives_alias",
            "gives_stage", "created_at", "verdicts",
        ]  # fmt: skip

    @extend_schema_field(VerdictOut(many=True))
    def get_verdicts(self, rule: PromotionRule) -> Any:
        return VerdictOut(rule.verdicts.all()[:10], many=True).data
