"""Serializers of services."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from aiplatform.lib.titles import TITLE
from inference.evaluation import thresholds
from inference.registry.models import Visibility
from inference.registry.version_serializers import VersionField
from inference.serving import endpoints, host_assignment
from inference.serving.limits import LIMITS, limits_of
from inference.serving.models import Service
from workers.jobs.api.resource_request import ResourcesIn


def _limit(name: str, help_text: str) -> serializers.IntegerField:
    limit = LIMITS[name]
    return serializers.IntegerField(
        min_value=limit.minimum, max_value=limit.maximum, required=False, help_text=help_text
    )


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
        return host_assignment.wants(service)

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
    """One service, with the best score threshold for requests."""

    best_score = serializers.SerializerMethodField(
        help_text="Initial score threshold of the page: the one with the best F1 in the newest evaluation of the "
        "version; null: the default of the model."
    )

    class Meta(ServiceOut.Meta):
        fields = [*ServiceOut.Meta.fields, "best_score"]

    def get_best_score(self, service: Service) -> float | None:
        version = service.model_version
        return thresholds.default_score(version, by=self.context["request"].user) if version else None


class ServiceIn(ResourcesIn):
    """A service to make and start."""

    name = serializers.CharField(
        max_length=50, default="", allow_blank=True, validators=[TITLE], help_text="If empty, the name of the model."
    )
    model_version = VersionField(to_use=True)
    description = serializers.CharField(max_length=200, required=False, default="", allow_blank=True)
    visibility = serializers.ChoiceField(Visibility.choices, required=False, default=Visibility.PRIVATE)
    gpus_per_node = serializers.IntegerField(min_value=0, max_value=1, required=False, default=0)
    cpus = serializers.FloatField(min_value=0.1, max_value=256, required=False, default=endpoints.DEFAULT_CPUS)
    max_batch = serializers.IntegerField(min_value=1, max_value=256, required=False, default=8)
    max_delay_ms = serializers.FloatField(min_value=0, max_value=1000, required=False, default=2.0)
    limits = ServiceLimitsIn(required=False, default=dict)
    share_process = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Share one process with your other endpoints that request the same resources.",
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
