"""What the API says about jobs and machines."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from aiplatform.lib.answers import OutMixin
from aiplatform.lib.message_field import MessageOut
from workers.core import disk_limits, kinds, run_time
from workers.core.models import Job, JobEvent
from workers.jobs import buttons, panels
from workers.jobs.api.progress_fields import PROGRESS, PhaseTimeOut


class JobOut(OutMixin, serializers.ModelSerializer[Job]):
    """A job of any kind. Times are ISO 8601 in UTC, spans seconds."""

    kind_label = serializers.SerializerMethodField(help_text="What people call its kind, in the caller's language.")
    kind_icon = serializers.SerializerMethodField(help_text="Name of the icon of its kind.")
    owner = serializers.CharField(source="owner.username")
    cluster = serializers.CharField(source="cluster.name")
    attempt = serializers.IntegerField(source="attempt_number")
    state_label = serializers.CharField(source="get_state_display")
    progress = serializers.FloatField(help_text="0 to 1 of the phase; null before its first step.")
    eta_s = serializers.FloatField(help_text="Seconds until the job ends, over all phases; null where unknown.")
    phase_label = serializers.CharField(source="get_phase_display", help_text="`phase` in the caller's language.")
    phase_done = serializers.IntegerField(help_text="Counter of the phase, of `phase_total`.")
    phase_total = serializers.IntegerField()
    phase_times = PhaseTimeOut(source="timeline", many=True)
    sentence = serializers.CharField(source="message", read_only=True, help_text="`message` in the caller's language.")
    message = MessageOut(read_only=True)
    wait_sentence = serializers.CharField()
    max_runtime_s = serializers.SerializerMethodField()
    devices = serializers.SerializerMethodField()
    url = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields = (
            "id", "kind", "kind_label", "kind_icon", "name", "owner", "cluster", "cluster_id", "state", "state_label",
            "published", "desired", "reason", "sentence", "message", "wait_code", "wait_sentence", "position", "eta",
            *PROGRESS, "nodes", "gpus_per_node", "cpus", "max_disk_bytes", "priority", "preemptible", "root_inside",
            "max_runtime_s", "restart", "retries", "retried", "array",
            "array_index", "attempt", "devices", "created_at", "queued_at", "started_at", "ended_at",
            "url",
        )  # fmt: skip

    def get_kind_label(self, job: Job) -> str:
        return kinds.label_of(job.kind)

    def get_kind_icon(self, job: Job) -> str:
        return kinds.icon_of(job.kind)

    def get_max_runtime_s(self, job: Job) -> float | None:
        return job.max_runtime.total_seconds() if job.max_runtime else None

    def get_devices(self, job: Job) -> list[dict[str, Any]]:
        """Devices held now: [{"node", "kind", "index", "simulated"}]."""
        live = getattr(job, "live_attempts", None)
        if live is None:
            return []
        return [
            {
                "node": held.node.name,
                "kind": held.device.kind,
                "index": held.device.index,
                "simulated": held.device.simulated,
            }
            for attempt in live
            for held in attempt.allocations.all()
        ]

    def get_url(self, job: Job) -> str:
        return kinds.url_of(job)


class JobDetailOut(JobOut):
    """One job, with its buttons: [{"verb", "allowed", "why"}]."""

    actions = serializers.SerializerMethodField()
    disk_limit_bytes = serializers.SerializerMethodField(
        help_text="Bytes that it may take on each node, by its own limit and its cluster's; null: no limit."
    )
    disk_bytes = serializers.SerializerMethodField(
        help_text="Bytes that its newest attempt takes on its first node; null: no limit, or not measured yet."
    )
    limit_s = serializers.SerializerMethodField(help_text="Seconds it may run, with what was granted; null: no limit.")
    isolation = serializers.SerializerMethodField(help_text="Sandbox of the newest attempt; null: not started.")
    exit_code = serializers.SerializerMethodField(
        help_text="Of its newest attempt's program; null while it runs, and where it left none."
    )

    follows = serializers.SerializerMethodField(help_text='[{"id", "state", "needs"}]: "success" or "end" of it.')
    places = serializers.SerializerMethodField(
        help_text='Nodes of the newest attempt: [{"rank", "node", "address", "ports"}].'
    )

    class Meta(JobOut.Meta):
        fields = (  # type: ignore[assignment]  # longer than the tuple it extends
            *JobOut.Meta.fields, "actions", "disk_limit_bytes", "disk_bytes", "limit_s", "isolation", "exit_code",
            "follows", "places",
        )  # fmt: skip

    def get_follows(self, job: Job) -> list[dict[str, Any]]:
        rows = job.dependencies.values_list("on_id", "on__state", "needs")
        return [{"id": number, "state": state, "needs": needs} for number, state, needs in rows]

    def get_places(self, job: Job) -> list[dict[str, Any]]:
        return [
            {"rank": rank, "node": item["node"].name, "address": item["node"].address, "ports": item["ports"]}
            for rank, item in panels.ranks_of(job).items()
        ]

    def get_isolation(self, job: Job) -> dict[str, Any] | None:
        newest = job.attempts.order_by("-number").first()
        if newest is None or newest.sandbox_tier is None:
            return None
        return {"tier": newest.sandbox_tier, "words": newest.sandbox_words, "image": newest.image}

    def get_exit_code(self, job: Job) -> int | None:
        newest = job.attempts.order_by("-number").first()
        return newest.exit_code if newest else None

    def get_disk_limit_bytes(self, job: Job) -> int | None:
        return disk_limits.limit_bytes(job)

    def get_disk_bytes(self, job: Job) -> int | None:
        newest = job.attempts.order_by("-number").first()
        return newest.disk_bytes if newest else None

    def get_limit_s(self, job: Job) -> float | None:
        span = run_time.runtime(job)
        return span.total_seconds() if span else None

    def get_actions(self, job: Job) -> list[dict[str, Any]]:
        return [{"verb": b.verb, "allowed": b.allowed, "why": b.why} for b in buttons.list_buttons(job)]


class EventOut(OutMixin, serializers.ModelSerializer[JobEvent]):
    """One line of a job's event log."""

    by = serializers.CharField(source="by.username", default=None)
    sentence = serializers.CharField(source="message", read_only=True, help_text="`message` in the caller's language.")
    message = MessageOut(read_only=True)

    class Meta:
        model = JobEvent
        fields = ("id", "at", "attempt", "event", "state", "by", "sentence", "message")
