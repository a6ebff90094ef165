"""Serializers of the training API. A field not named here is refused by name, never ignored."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField
from aiplatform.lib.secret_names import mask_params, mask_text
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from training.programs import script
from training.programs.launchers import Launcher
from training.programs.serializers import CODE_FIELDS, ProgramIn, ProgramOut, ScriptOut
from training.runs import custom_networks, previews, snippets, steering
from training.runs.models import ParameterSet, ParameterSetVersion, TrainingJob
from training.runs.profiles import Profile
from workers.jobs.api.following import FollowingIn
from workers.jobs.api.progress_fields import PROGRESS, ProgressFields


class StrictSerializer(StrictMixin, serializers.Serializer):
    """Refuses unknown fields: owner, state and node are never set by a request."""


class OwnCodeIn(FollowingIn, ProgramIn):
    """A training with custom code."""

    gpus_per_node = serializers.IntegerField(min_value=0, max_value=128, required=False, allow_null=True, default=None)
    version = VisibleField(
        DatasetVersion, to_use=True, required=False, allow_null=True, default=None,
        help_text="What it learns from. Own code may do without, and take data that is not annotated.",
    )  # fmt: skip
    description = serializers.CharField(max_length=500, default="", allow_blank=True)
    params = serializers.DictField(default=dict)
    start_file = serializers.CharField(max_length=255, default="", allow_blank=True)
    arguments = serializers.CharField(max_length=2000, default="", allow_blank=True)
    command = serializers.CharField(
        max_length=script.MAX_LENGTH, default="", allow_blank=True, trim_whitespace=False,
        help_text="Instead of an entry point: a command line or a bash script, or a script with its own "
        "“#!”. No code is needed.",
    )  # fmt: skip
    worker_command = serializers.CharField(
        max_length=script.MAX_LENGTH, default="", allow_blank=True, trim_whitespace=False,
        help_text="Command of all nodes except the first; empty: the same command.",
    )  # fmt: skip
    launcher = serializers.ChoiceField(
        choices=Launcher.choices, default="", allow_blank=True,
        help_text="How each node starts custom code. Empty: a command runs once; an entry point runs once, "
        "or by torchrun where "
        "several processes or nodes are requested.",
    )  # fmt: skip
    writes_checkpoints = serializers.BooleanField(default=False)
    extra = serializers.CharField(max_length=1000, default="", allow_blank=True)
    output_path = serializers.CharField(max_length=255, default="", allow_blank=True)
    eval_version = VisibleField(DatasetVersion, to_use=True, required=False, allow_null=True, default=None)
    processes = serializers.IntegerField(min_value=0, max_value=64, default=0)


class RequestIn(OwnCodeIn):
    """A training of a preset, or with custom code, as templates and the YAML editor state it."""

    preset = serializers.CharField(max_length=30, default="", allow_blank=True)
    min_nodes = serializers.IntegerField(
        min_value=0, max_value=64, default=0,
        help_text="Minimum number of nodes: the job starts on as many of `nodes` as are free. 0: only on all of them.",
    )  # fmt: skip

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = self.with_parameter_set(super().validate(attrs))
        own = next((name for name in ("code", *CODE_FIELDS, "command") if attrs.get(name)), "")
        if attrs["preset"] and own:
            raise serializers.ValidationError({own: [_("Specify either a preset or custom code.")]})
        return attrs

    def with_parameter_set(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Return `attrs` with the parameters of the set that they name."""
        return attrs


class TrainingIn(RequestIn):
    """A training of a preset, or with own code."""

    parameter_set = VisibleField(ParameterSet, to_use=True, required=False, allow_null=True, default=None)
    parameter_set_version = serializers.IntegerField(
        min_value=1,
        required=False,
        allow_null=True,
        default=None,
        help_text="Version number; the newest version if omitted.",
    )
    explicit = serializers.BooleanField(
        default=False, help_text="Explicit mode: the dataset exists and every parameter is set."
    )
    parent = VisibleField(TrainingJob, required=False, allow_null=True, default=None)  # type: ignore[assignment]  # a field of that name, not DRF's attribute

    def with_parameter_set(self, attrs: dict[str, Any]) -> dict[str, Any]:
        chosen, number = attrs.pop("parameter_set"), attrs.pop("parameter_set_version")
        if number and not chosen:
            raise serializers.ValidationError({"parameter_set": [_("Enter the set of the version.")]})
        if chosen:
            if attrs["preset"] not in ("", chosen.preset):
                raise serializers.ValidationError({"parameter_set": [_("This set belongs to another preset.")]})
            attrs["preset"] = chosen.preset
            version = chosen.versions.filter(number=number or chosen.number).first()
            if version is None:
                message = _("%(name)s has no version %(number)s.") % {"name": chosen.name, "number": number}
                raise serializers.ValidationError({"parameter_set_version": [message]})
            theirs = custom_networks.is_own(version.params) and version.made_by_id != self.context["request"].user.pk
            if theirs and not number and custom_networks.PARAMETER not in attrs["params"]:
                text = _("Another user wrote the network in %(name)s and can change it. Name the version you reviewed.")
                raise serializers.ValidationError({"parameter_set_version": [text % {"name": chosen.name}]})
            attrs["params"] = {**version.params, **attrs["params"]}
            attrs["set_version"] = version
        return attrs


class RestoreIn(StrictSerializer):
    checkpoint = serializers.CharField(max_length=60, default="", allow_blank=True)
    params = serializers.DictField(default=dict)
    gpus_per_node = serializers.IntegerField(min_value=0, max_value=128, required=False, allow_null=True, default=None)
    nodes = serializers.IntegerField(min_value=1, max_value=64, required=False, allow_null=True, default=None)


class ProfileIn(StrictSerializer):
    steps = serializers.IntegerField(min_value=1, max_value=previews.MAX_STEPS, default=previews.USUAL_STEPS)


class OperationOut(serializers.Serializer):
    """One kind of operation; calls and milliseconds of one step."""

    name = serializers.CharField()
    calls = serializers.FloatField()
    self_cpu_ms = serializers.FloatField()
    cpu_ms = serializers.FloatField()
    self_device_ms = serializers.FloatField()
    share = serializers.FloatField(help_text="Of all operations' own time, 0 to 1.")


class AdviceOut(serializers.Serializer):
    code = serializers.CharField()
    text = serializers.CharField()


class ProfileOut(serializers.Serializer):
    """Where the time of a step goes; milliseconds of one step."""

    attempt = serializers.IntegerField(help_text="Of the job that left it.")
    own = serializers.BooleanField(help_text="A script of one's own wrote it, by the SDK.")
    steps = serializers.IntegerField()
    step_ms = serializers.FloatField()
    profiled_step_ms = serializers.FloatField(allow_null=True)
    device = serializers.CharField()
    batch_size = serializers.IntegerField(help_text="0: not known.")
    precision = serializers.CharField(help_text="Empty if unknown.")
    memory_mib = serializers.FloatField(allow_null=True)
    shares = serializers.SerializerMethodField()
    named = serializers.SerializerMethodField()
    operations = OperationOut(many=True)
    of_operations = serializers.IntegerField()
    advice = AdviceOut(many=True)

    def get_shares(self, profile: Profile) -> dict[str, float]:
        """Of the parts that are known and of the rest; together 1."""
        return {part: share for part, _words, share in profile.shares}

    def get_named(self, profile: Profile) -> dict[str, float]:
        """Parts of the rest that the script named as it liked."""
        return dict(profile.named)


class LayersIn(StrictSerializer):
    checkpoint = serializers.CharField(
        max_length=60, default="", allow_blank=True, help_text="A name from its checkpoints; empty: the newest."
    )
    image = serializers.FileField(
        required=False, allow_null=True, default=None, help_text="Left out: some of the images it is scored on."
    )


class TrainingOut(ProgressFields, ScriptOut, ProgramOut):
    job = serializers.IntegerField(source="job_id")
    reason = serializers.CharField(source="job.reason")
    published = serializers.BooleanField(source="job.published", read_only=True)
    wait_code = serializers.CharField(source="job.wait_code")
    wait_sentence = serializers.SerializerMethodField()
    position = serializers.IntegerField(source="job.position")
    eta = serializers.DateTimeField(source="job.eta")
    progress = serializers.FloatField()
    loss = serializers.FloatField(default=None, allow_null=True, help_text="The newest it reported.")
    lr = serializers.FloatField(default=None, allow_null=True, help_text="The newest learning rate it reported.")
    attempt = serializers.IntegerField(source="job.attempt_number")
    cluster = serializers.IntegerField(source="job.cluster_id")
    cluster_name = serializers.CharField(source="job.cluster.name")
    nodes = serializers.IntegerField(source="job.nodes", help_text="Of its newest attempt.")
    min_nodes = serializers.IntegerField(source="job.min_nodes", help_text="Fewer will do; 0: all or none.")
    max_nodes = serializers.IntegerField(source="job.max_nodes", help_text="What it wants then; 0: `nodes`.")
    gpus_per_node = serializers.IntegerField(source="job.gpus_per_node")
    cpus = serializers.FloatField(source="job.cpus")
    share = serializers.IntegerField(source="job.share")
    memory_mib = serializers.IntegerField(source="job.memory_mib")
    max_disk_bytes = serializers.IntegerField(source="job.max_disk_bytes")
    priority = serializers.IntegerField(source="job.priority")
    preemptible = serializers.BooleanField(source="job.preemptible")
    root_inside = serializers.BooleanField(source="job.root_inside")
    max_runtime_s = serializers.SerializerMethodField()
    dataset = serializers.CharField(source="version_label")
    started_at = serializers.DateTimeField(source="job.started_at")
    params = serializers.SerializerMethodField()
    arguments = serializers.SerializerMethodField()
    parameter_set = serializers.SerializerMethodField(
        help_text='Set that it was started from: {"id", "number", "name"}; id and number are null if it was deleted.'
    )

    class Meta:
        model = TrainingJob
        fields = [
            "id", "job", "name", "description", "owner", "state", "published", "reason", "sentence", "wait_code",
            "wait_sentence", "position", "eta", *PROGRESS, "loss", "lr", "attempt", "preset", "params", "extra", "code",
            "start_file", "arguments", "command", "worker_command", "launcher", "image", "variables", "secrets",
            "output_path", "parameter_set", "version", "dataset", "eval_version", "datasets", "cluster", "cluster_name",
            "nodes", "min_nodes", "max_nodes", "gpus_per_node", "processes", "share", "cpus", "memory_mib",
            "max_disk_bytes", "priority", "preemptible", "root_inside", "max_runtime_s", "parent", "metrics",
            "created_at", "started_at", "ended_at", "url",
        ]  # fmt: skip
        read_only_fields = fields

    def get_params(self, training: TrainingJob) -> dict[str, Any]:
        return training.params if training.preset else mask_params(training.params)

    def get_arguments(self, training: TrainingJob) -> str:
        return mask_text(training.arguments, snippets.secrets_of(training))

    def get_parameter_set(self, training: TrainingJob) -> dict[str, Any] | None:
        use = getattr(training, "set_use", None)
        if use is None:
            return None
        version = use.version
        entry = {"id": version.parameter_set_id, "number": version.number} if version else {"id": None, "number": None}
        return entry | {"name": use.name}

    def get_wait_sentence(self, training: TrainingJob) -> str:
        return training.job.wait_sentence if training.job.state == "queued" else ""

    def get_max_runtime_s(self, training: TrainingJob) -> int | None:
        span = training.job.max_runtime
        return int(span.total_seconds()) if span else None

    def get_url(self, training: TrainingJob) -> str:
        return f"/training/{training.pk}/"


class TrainingDetailOut(TrainingOut):
    """With the verbs that are legal now; computed per row, so not in lists."""

    actions = serializers.SerializerMethodField()

    class Meta(TrainingOut.Meta):
        fields = [*TrainingOut.Meta.fields, "actions"]
        read_only_fields = fields

    def get_actions(self, training: TrainingJob) -> list[str]:
        return steering.legal(training)


class CheckpointOut(serializers.Serializer):
    name = serializers.CharField()
    attempt = serializers.IntegerField()
    step = serializers.IntegerField()
    epoch = serializers.FloatField(allow_null=True)
    metric = serializers.FloatField(allow_null=True)
    best = serializers.BooleanField()
    size_bytes = serializers.IntegerField()
    written_at = serializers.DateTimeField()


class FoldOut(serializers.ModelSerializer[TrainingJob]):
    fold = serializers.IntegerField(source="job.array_index")
    name = serializers.CharField(source="job.name")
    state = serializers.CharField(source="job.state")

    class Meta:
        model = TrainingJob
        fields = ("id", "fold", "name", "state", "metrics")


class FoldFigureOut(serializers.Serializer):
    key = serializers.CharField()
    mean = serializers.FloatField()
    spread = serializers.FloatField(allow_null=True, help_text="Standard deviation of a sample; null of one fold.")
    folds = serializers.IntegerField(help_text="How many folds have it.")


class CrossValidationOut(serializers.Serializer):
    folds = FoldOut(many=True)
    figures = FoldFigureOut(many=True)


class ParameterSetIn(StrictSerializer):
    name = serializers.CharField(max_length=50, validators=[TITLE])
    preset = serializers.CharField(max_length=30)
    description = serializers.CharField(max_length=200, default="", allow_blank=True)
    visibility = serializers.ChoiceField(
        choices=ParameterSet.Visibility.choices, required=False, help_text="private when left out of a new set."
    )
    params = serializers.DictField(default=dict)


class ParameterSetOut(OutMixin, serializers.ModelSerializer):
    owner = serializers.CharField(source="owner.username")
    version = serializers.IntegerField(source="number", help_text="The number of its newest version.")

    class Meta:
        model = ParameterSet
        fields = [
            "id", "name", "owner", "description", "visibility", "preset", "version", "params", "created_at",
            "updated_at",
        ]  # fmt: skip
        read_only_fields = fields


class ParameterSetVersionOut(OutMixin, serializers.ModelSerializer):
    made_by = serializers.CharField(source="made_by.username", default=None, allow_null=True)

    class Meta:
        model = ParameterSetVersion
        fields = ["number", "params", "made_by", "made_at"]
        read_only_fields = fields


class ParamOut(serializers.Serializer):
    name = serializers.CharField()
    kind = serializers.CharField()
    default = serializers.JSONField()
    minimum = serializers.FloatField(allow_null=True)
    maximum = serializers.FloatField(allow_null=True)
    choices = serializers.ListField(child=serializers.CharField())
    unit = serializers.CharField()
    help = serializers.CharField()
    advanced = serializers.BooleanField()
    group = serializers.CharField(help_text="The heading of forms under which it is listed.")


class PresetOut(serializers.Serializer):
    name = serializers.CharField()
    task = serializers.CharField()
    title = serializers.CharField()
    purpose = serializers.CharField()
    architectures = serializers.DictField()
    accuracy = serializers.SerializerMethodField()
    size = serializers.CharField()
    reference_time = serializers.CharField()
    created = serializers.DateField(help_text="The day it joined the catalog.")
    pause = serializers.BooleanField()
    suspend = serializers.BooleanField()
    finish = serializers.BooleanField()
    restore = serializers.BooleanField()
    parameters = ParamOut(many=True)

    def get_accuracy(self, preset: Any) -> list[dict[str, Any]]:
        return [
            {"dataset": result.dataset, "metric": result.metric, "value": result.value, "conditions": result.conditions}
            for result in preset.expected
        ]
