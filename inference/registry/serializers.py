"""Serializers of models, versions and jobs about a model."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import VisibleField
from aiplatform.lib.titles import TITLE
from datasets.models import Upload
from inference.registry import cards, class_colors
from inference.registry.formats.declared import LAYOUTS, PIXELS, RESIZES
from inference.registry.models import Model, ModelTask, ModelVersion, Visibility
from inference.registry.selftest.models import SelfTest
from inference.registry.version_serializers import AliasOut
from workers.core.models import Job
from workers.jobs.api.progress_fields import PROGRESS, ProgressFields


class ModelOut(OutMixin, serializers.ModelSerializer):
    """A model with the main figures of its newest version."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    task = serializers.CharField(source="newest_task", read_only=True)
    latest_version = serializers.IntegerField(source="newest_number", read_only=True)
    latest_version_id = serializers.IntegerField(source="newest_id", read_only=True)
    metrics = serializers.JSONField(source="newest_metrics", read_only=True)
    size_bytes = serializers.IntegerField(source="newest_bytes", read_only=True)
    stage = serializers.CharField(source="newest_stage", read_only=True)
    aliases = AliasOut(many=True, read_only=True)

    class Meta:
        model = Model
        fields = [
            "id", "name", "description", "visibility", "owner", "task", "latest_version", "latest_version_id",
            "metrics", "size_bytes", "stage", "aliases", "created_at", "updated_at",
        ]  # fmt: skip


class ModelDetailOut(ModelOut):
    """A model with its card."""

    card = serializers.SerializerMethodField()

    class Meta(ModelOut.Meta):
        fields = [*ModelOut.Meta.fields, "packages_pictures", "card"]

    def get_card(self, model: Model) -> dict[str, str]:
        return cards.read(model)


class VersionIn(serializers.Serializer):
    """The location of a model, one of `file`, `upload`, `path` and `job`; and what its files do not say."""

    file = serializers.FileField(required=False)
    upload = VisibleField(Upload, required=False, help_text="The id of a finished upload.")
    path = serializers.CharField(
        required=False, max_length=1000, help_text="A file or a folder in your home, or in the outputs of `job`."
    )
    job = VisibleField(Job, required=False, help_text="A job that is over; without `path` its model folder is taken.")
    task = serializers.CharField(
        required=False, max_length=15, help_text=f"What the model is for: {', '.join(LAYOUTS)}."
    )
    labels = serializers.CharField(
        required=False, max_length=2_000_000, trim_whitespace=False,
        help_text="In the order of the model's outputs: one a line, or the JSON of a list or of id2label.",
    )  # fmt: skip
    layout = serializers.CharField(
        required=False, max_length=20,
        help_text="How the outputs are laid out: "
        + "; ".join(f"{task}: {', '.join(layouts)}" for task, layouts in LAYOUTS.items()) + ".",
    )  # fmt: skip
    pixels = serializers.ChoiceField(list(PIXELS), required=False, help_text="What RGB values of 0..255 become.")
    width = serializers.IntegerField(required=False, min_value=1, max_value=8192)
    height = serializers.IntegerField(required=False, min_value=1, max_value=8192)
    resize = serializers.ChoiceField(RESIZES, required=False)


class ModelIn(VersionIn):
    """A new model."""

    name = serializers.CharField(max_length=100, validators=[TITLE])
    description = serializers.CharField(max_length=500, required=False, default="", allow_blank=True)
    visibility = serializers.ChoiceField(Visibility.choices, required=False, default=Visibility.PRIVATE)


class ModelEditIn(serializers.Serializer):
    description = serializers.CharField(max_length=500, required=False, allow_blank=True)
    visibility = serializers.ChoiceField(Visibility.choices, required=False)
    packages_pictures = serializers.BooleanField(
        required=False,
        help_text="Packages contain up to two images of the dataset for the self-test of devices.",
    )
    card = serializers.DictField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False),
        required=False,
        help_text="Sections of the model card: purpose, data, limits (Markdown), licence, contact. Omitted "
        "sections are unchanged.",
    )


class SelfTestOut(OutMixin, serializers.ModelSerializer):
    """Samples with known answers that packages of a version carry; devices compare theirs before they use it."""

    class Meta:
        model = SelfTest
        fields = ["samples", "pictures", "made_with", "made_at"]


class ModelVersionOut(OutMixin, serializers.ModelSerializer):
    """A version with its lineage and files."""

    model_name = serializers.CharField(source="model.name", read_only=True)
    aliases: Any = serializers.SlugRelatedField("name", many=True, read_only=True)
    self_test = serializers.SerializerMethodField()
    classes = serializers.SerializerMethodField()

    class Meta:
        model = ModelVersion
        fields = [
            "id", "model", "model_name", "number", "task", "source", "architecture", "preset", "classes", "metrics",
            "params", "facts", "files", "size_bytes", "sha256", "job", "attempt", "dataset_version", "dataset_label",
            "code_label", "stage", "stage_reason", "stage_at", "aliases", "parent", "parent_label", "teacher",
            "teacher_label", "storage_path", "self_test", "created_at",
        ]  # fmt: skip

    @extend_schema_field(serializers.JSONField(help_text="Each with `id`, `name` and `color`."))
    def get_classes(self, version: ModelVersion) -> list[dict[str, Any]]:
        """The color is that of the dataset that the version learned from."""
        colors = class_colors.for_model(version)
        return [item | {"color": colors[item["id"]]} for item in version.classes]

    @extend_schema_field(SelfTestOut(allow_null=True))
    def get_self_test(self, version: ModelVersion) -> dict[str, Any] | None:
        """None where no job has made samples yet."""
        self_test = getattr(version, "self_test", None)
        return SelfTestOut(self_test).data if self_test else None


class JobFields(ProgressFields):
    """Fields of the job, shown on evaluations and services."""

    job = serializers.IntegerField(source="job_id", read_only=True)
    state = serializers.CharField(source="job.state", read_only=True)
    sentence = serializers.CharField(source="job.message", read_only=True)
    published = serializers.BooleanField(source="job.published", read_only=True)
    wait_sentence = serializers.CharField(source="job.wait_sentence", read_only=True)


class ModelTaskOut(OutMixin, JobFields, serializers.ModelSerializer):
    """A job about a model: a measurement with its figures, or an import with the version made of it."""

    refused = serializers.CharField(source="message", read_only=True, help_text="Why nothing came of it.")
    created_at = serializers.DateTimeField(source="job.created_at", read_only=True)
    ended_at = serializers.DateTimeField(source="job.ended_at", read_only=True)

    class Meta:
        model = ModelTask
        fields = [
            "id", "act", "version", "made", "figures", "refused", "job", "state", "published", "sentence",
            "wait_sentence", *PROGRESS, "created_at", "ended_at",
        ]  # fmt: skip


class MeasurementOut(OutMixin, serializers.ModelSerializer):
    """How fast a version answered, and under which conditions."""

    created_at = serializers.DateTimeField(source="job.created_at", read_only=True)

    class Meta:
        model = ModelTask
        fields = ["id", "figures", "created_at"]


class MeasureIn(serializers.Serializer):
    """Where a version is measured."""

    cpus = serializers.FloatField(required=False, min_value=0.1, max_value=256)
    gpus = serializers.IntegerField(required=False, min_value=0, max_value=1)
    device_model = serializers.CharField(
        required=False, max_length=100, allow_blank=True, help_text="GPU model; one GPU is requested."
    )


class HardwareSpeedOut(serializers.Serializer):
    """A kind of hardware, and the medians of what its devices and nodes measured, for display."""

    hardware = serializers.CharField(help_text="GPU that it was measured on, otherwise the CPU.")
    machine = serializers.CharField()
    threads = serializers.IntegerField()
    provider = serializers.CharField()
    devices = serializers.IntegerField(help_text="Edge devices that timed themselves.")
    nodes = serializers.ListField(child=serializers.CharField(), help_text="Nodes of the cluster.")
    p50_ms = serializers.FloatField(help_text="For one image.")
    p95_ms = serializers.FloatField()
    memory_mib = serializers.FloatField(allow_null=True)
