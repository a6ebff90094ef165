"""Serializers of the API of models, evaluations and services."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField, by_field
from aiplatform.lib.errors import DomainError
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion, Upload
from inference.api.registry_serializers import AliasOut, VersionField
from inference.evaluation_sets import sets
from inference.evaluation_sets.tables import EvaluationSet
from inference.formats.declared import LAYOUTS, PIXELS, RESIZES
from inference.models import Evaluation, Model, ModelTask, ModelVersion, Service, Visibility
from inference.scripted.api import ScriptedOut, ScriptIn
from inference.selftest.tables import SelfTest
from inference.services import best_scores, cards, serving
from inference.services.limits import LIMITS, limits_of
from inference.services.results import manual_names
from inference.sharing import hosts
from inference.telling import tiles
from workers.jobs.api.progress_fields import PROGRESS, ProgressFields
from workers.jobs.api.resource_request import ResourcesIn
from workers.models import Job


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
        return cards.of(model)


class VersionIn(serializers.Serializer):
    """Where a model lies, one of `file`, `upload`, `path` and `job`; and what its files do not say."""

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
        help_text="Packages carry up to two pictures of the dataset, for the self-test of devices.",
    )
    card = serializers.DictField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False),
        required=False,
        help_text="Parts of the card: purpose, data, limits (Markdown), licence, contact. Others stay.",
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

    class Meta:
        model = ModelVersion
        fields = [
            "id", "model", "model_name", "number", "task", "source", "architecture", "preset", "classes", "metrics",
            "params", "facts", "files", "size_bytes", "sha256", "job", "attempt", "dataset_version", "dataset_label",
            "code_label", "stage", "stage_reason", "stage_at", "aliases", "parent", "parent_label", "teacher",
            "teacher_label", "storage_path", "self_test", "created_at",
        ]  # fmt: skip

    @extend_schema_field(SelfTestOut(allow_null=True))
    def get_self_test(self, version: ModelVersion) -> dict[str, Any] | None:
        """None where no job has made samples yet."""
        found = getattr(version, "self_test", None)
        return SelfTestOut(found).data if found else None


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
        required=False, max_length=100, allow_blank=True, help_text="Which model of card; it asks for one."
    )


class HardwareSpeedOut(serializers.Serializer):
    """A kind of hardware, and the medians of what its devices and nodes said: for people to look at."""

    hardware = serializers.CharField(help_text="The card that ran it, else the processor.")
    machine = serializers.CharField()
    threads = serializers.IntegerField()
    provider = serializers.CharField()
    devices = serializers.IntegerField(help_text="Edge devices that timed themselves.")
    nodes = serializers.ListField(child=serializers.CharField(), help_text="Nodes of the cluster.")
    p50_ms = serializers.FloatField(help_text="Of one picture.")
    p95_ms = serializers.FloatField()
    memory_mib = serializers.FloatField(allow_null=True)


class EvaluationOut(OutMixin, ScriptedOut, JobFields, serializers.ModelSerializer):
    """An evaluation; `metrics` are empty until it has ended."""

    name = serializers.CharField(source="job.name", read_only=True)
    owner = serializers.CharField(source="job.owner.username", read_only=True)
    model = serializers.CharField(source="model_label", read_only=True)
    dataset = serializers.CharField(source="version_label", read_only=True)
    created_at = serializers.DateTimeField(source="job.created_at", read_only=True)
    started_at = serializers.DateTimeField(source="job.started_at", read_only=True)
    ended_at = serializers.DateTimeField(source="job.ended_at", read_only=True)
    conditions = serializers.SerializerMethodField(
        help_text="Split and score threshold that precision, recall and F1 of `metrics` hold for; empty before the end."
    )
    figures = serializers.SerializerMethodField(
        help_text="Those of `metrics` that the manual names, by its names: Accuracy, Precision, Recall, Recall_5, mAP."
    )

    class Meta:
        model = Evaluation
        fields = [
            "id", "name", "owner", "job", "state", "published", "sentence", "wait_sentence", *PROGRESS,
            "model", "model_version", "dataset", "version", "split", "task", "params", "script", "metrics", "figures",
            "conditions", "chosen_threshold", "created_at", "started_at", "ended_at",
        ]  # fmt: skip

    def get_conditions(self, evaluation: Evaluation) -> str:
        return tiles.conditions(evaluation, evaluation.metrics)

    def get_figures(self, evaluation: Evaluation) -> dict[str, float]:
        return manual_names(evaluation.task, evaluation.metrics)


class EvaluationIn(ScriptIn, ResourcesIn):
    """A new evaluation: model, data, resources; `params` of our evaluator, or of an own script.

    `split` is one of the version's; "" takes all images, "unseen" those that the model did not learn from, "auto" the
    first there is of test, val, unseen.
    """

    model_version = VersionField(to_use=True)
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
    name = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)
    params = serializers.DictField(required=False, default=dict)
    nodes = None  # type: ignore[assignment]  # takes the inherited field away, as DRF has it
    gpus_per_node = serializers.IntegerField(min_value=0, max_value=128, required=False, default=0)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        chosen = attrs.pop("parameter_set")
        if chosen is None:
            if attrs.get("version") is None:
                raise serializers.ValidationError({"version": [_("Name a dataset version, or a parameter set.")]})
            return attrs
        left_out = set(sets.GIVEN) - set(self.initial_data)
        named = {name: value for name, value in attrs.items() if name not in left_out}
        try:
            return attrs | sets.begin_with(chosen, named, user=self.context["request"].user)
        except DomainError as exc:
            raise serializers.ValidationError(by_field(exc)) from None


def _limit(name: str, help_text: str) -> serializers.IntegerField:
    limit = LIMITS[name]
    return serializers.IntegerField(min_value=limit.least, max_value=limit.most, required=False, help_text=help_text)


class ServiceLimitsIn(StrictMixin, serializers.Serializer):
    """How many servers a service has and what it allows its callers; sizes and waits hold from its next start."""

    keep_percent = _limit("keep_percent", "Pictures kept for annotation by chance, in percent.")
    keep_below = _limit("keep_below", "Pictures kept with an answer of a lower score, in percent; 0: none.")
    keep_differing = _limit(
        "keep_differing", "Pictures kept of which the answer of a shadow agrees less with the one given, in percent."
    )
    keep_days = _limit("keep_days", "Until pictures that a rule kept are removed.")
    min_replicas = _limit("min_replicas", "Servers always; 0: none while nobody asks.")
    max_replicas = _limit("max_replicas", "Servers at most.")
    queue_ms = _limit("queue_ms", "One more server where 1 of 20 requests waits longer.")
    idle_minutes = _limit("idle_minutes", "Without a request, until it has no server.")
    per_minute = _limit("per_minute", "Requests of one caller in any minute; 0: as often as they like.")
    max_body_mib = _limit("max_body_mib", "Size of a request.")
    request_batch = _limit("request_batch", "Pictures or samples in one request.")
    max_answer_mib = _limit("max_answer_mib", "Size of an answer.")
    deadline_s = _limit("deadline_s", "Seconds until an answer.")


class ServiceOut(OutMixin, serializers.ModelSerializer):
    """A service; `state` is "ready" once its server has answered."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    model = serializers.CharField(source="model_name", read_only=True)
    state = serializers.CharField(read_only=True)
    url = serializers.SerializerMethodField()
    running_s = serializers.SerializerMethodField()
    limits = serializers.SerializerMethodField()
    servers = serializers.SerializerMethodField(help_text="That answer.")
    sentence = serializers.CharField(source="job.message", read_only=True, default="")
    wait_sentence = serializers.CharField(source="job.wait_sentence", read_only=True, default="")
    next_state = serializers.CharField(
        source="next_job.state", read_only=True, default="", help_text="Of the server with `next_version`, its job's."
    )

    share_process = serializers.SerializerMethodField(help_text="Whether it is to share its process.")
    sharing_sentence = serializers.CharField(
        source="sharing_message", read_only=True, help_text="Why it left the process that it shared."
    )

    class Meta:
        model = Service
        fields = [
            "id", "name", "slug", "description", "visibility", "owner", "model", "model_version", "job", "state",
            "sentence", "wait_sentence", "next_version", "next_state", "url", "running_s", "limits", "servers",
            "options", "share_process", "sharing_sentence", "created_at",
        ]  # fmt: skip

    def get_share_process(self, service: Service) -> bool:
        return hosts.wants(service)

    def get_url(self, service: Service) -> str:
        request = self.context.get("request")
        url: str = request.build_absolute_uri(service.url) if request else service.url
        return url

    def get_servers(self, service: Service) -> int:
        return int(service.answers) + sum(row.answers for row in service.replicas.all())

    @extend_schema_field(ServiceLimitsIn)
    def get_limits(self, service: Service) -> Any:
        return limits_of(service)

    def get_running_s(self, service: Service) -> float | None:
        return round(service.running.total_seconds(), 1) if service.running is not None else None


class ServiceDetailOut(ServiceOut):
    """One service, with the score that requests to it best begin with."""

    best_score = serializers.SerializerMethodField(
        help_text="Lowest score of an answer that its page begins with: the best (F1) of the newest evaluation of "
        "its version; null: as the model says."
    )

    class Meta(ServiceOut.Meta):
        fields = [*ServiceOut.Meta.fields, "best_score"]

    def get_best_score(self, service: Service) -> float | None:
        version = service.model_version
        return best_scores.to_begin_with(version, by=self.context["request"].user) if version else None


class ServiceIn(ResourcesIn):
    """A service to make and start."""

    name = serializers.CharField(
        max_length=50, default="", allow_blank=True, validators=[TITLE], help_text="Empty: the model's."
    )
    model_version = VersionField(to_use=True)
    description = serializers.CharField(max_length=200, required=False, default="", allow_blank=True)
    visibility = serializers.ChoiceField(Visibility.choices, required=False, default=Visibility.PRIVATE)
    gpus_per_node = serializers.IntegerField(min_value=0, max_value=1, required=False, default=0)
    cpus = serializers.FloatField(min_value=0.1, max_value=256, required=False, default=serving.DEFAULT_CPUS)
    max_batch = serializers.IntegerField(min_value=1, max_value=256, required=False, default=8)
    max_delay_ms = serializers.FloatField(min_value=0, max_value=1000, required=False, default=2.0)
    limits = ServiceLimitsIn(required=False, default=dict)
    share_process = serializers.BooleanField(
        required=False, default=False, help_text="With other services of yours that ask the same of the machines."
    )
    nodes = None  # type: ignore[assignment]  # takes the inherited field away, as DRF has it
    max_runtime_s = None  # type: ignore[assignment]  # a service runs until it is stopped

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        del attrs["max_runtime"]
        return attrs


class ServiceModelIn(serializers.Serializer):
    """Which version a service is to answer with."""

    model_version = VersionField(to_use=True)


class ServiceEditIn(serializers.Serializer):
    share_process = serializers.BooleanField(required=False, help_text="Holds from its next start.")
    description = serializers.CharField(max_length=200, required=False, allow_blank=True)
    visibility = serializers.ChoiceField(Visibility.choices, required=False)
    limits = ServiceLimitsIn(required=False)
