"""What the API says about jobs and machines."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from workers.models import Device, Job, JobEvent, JoinToken, Node, NodeEvent
from workers.services import buttons, evictions, job_page, limits


class JobOut(serializers.ModelSerializer[Job]):
    """A job of any kind. Times are ISO 8601 in UTC, spans seconds."""

    owner = serializers.CharField(source="owner.username")
    cluster = serializers.CharField(source="cluster.name")
    attempt = serializers.IntegerField(source="attempt_number")
    state_label = serializers.CharField(source="get_state_display")
    wait_sentence = serializers.CharField()
    max_runtime_s = serializers.SerializerMethodField()
    devices = serializers.SerializerMethodField()
    url = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields = (
            "id", "kind", "name", "owner", "cluster", "cluster_id", "state", "state_label", "published", "desired",
            "reason", "sentence", "wait_code", "wait_sentence", "position", "eta", "progress", "eta_s", "nodes",
            "gpus_per_node", "cpus", "priority", "preemptible", "max_runtime_s", "restart", "attempt", "devices",
            "created_at", "queued_at", "started_at", "ended_at", "url",
        )  # fmt: skip

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
        return job_page.url(job)


class JobDetailOut(JobOut):
    """One job, with its buttons: [{"verb", "allowed", "why"}]."""

    actions = serializers.SerializerMethodField()
    limit_s = serializers.SerializerMethodField(help_text="Seconds it may run, with what was granted; null: no limit.")
    isolation = serializers.SerializerMethodField(
        help_text="Sandbox its newest attempt runs or ran in; null: not begun."
    )

    class Meta(JobOut.Meta):
        fields = (*JobOut.Meta.fields, "actions", "limit_s", "isolation")  # type: ignore[assignment]

    def get_isolation(self, job: Job) -> dict[str, Any] | None:
        newest = job.attempts.order_by("-number").first()
        if newest is None or newest.sandbox_tier is None:
            return None
        return {"tier": newest.sandbox_tier, "words": newest.sandbox_words, "image": newest.image}

    def get_limit_s(self, job: Job) -> float | None:
        span = limits.runtime(job)
        return span.total_seconds() if span else None

    def get_actions(self, job: Job) -> list[dict[str, Any]]:
        return [{"verb": b.verb, "allowed": b.allowed, "why": b.why} for b in buttons.of(job)]


class EventOut(serializers.ModelSerializer[JobEvent]):
    """One line of a job's story."""

    by = serializers.CharField(source="by.username", default=None)

    class Meta:
        model = JobEvent
        fields = ("id", "at", "attempt", "event", "state", "by", "sentence")


class DeviceOut(serializers.ModelSerializer[Device]):
    """A GPU, or a node's cores; amounts are shares, 8 to a card or core."""

    node = serializers.CharField(source="node.name")

    class Meta:
        model = Device
        fields = (
            "id", "node", "kind", "index", "uuid", "model", "memory_mib", "capacity", "used", "group", "health",
            "health_note", "parent", "simulated", "sample",
        )  # fmt: skip


class NodeOut(serializers.ModelSerializer[Node]):
    """A machine with its devices. `evicts_not` says why no work may be moved off its cards; empty: it may."""

    devices = DeviceOut(many=True)
    evicts_not = serializers.SerializerMethodField()

    class Meta:
        model = Node
        fields = (
            "id", "name", "state", "drain", "address", "heartbeat_at", "cpu_cores", "memory_mib", "sandbox_tier",
            "joined_at", "evicts", "evicts_not", "devices",
        )  # fmt: skip

    def get_evicts_not(self, node: Node) -> str:
        return evictions.obstacle(node)


class NodeEventOut(serializers.ModelSerializer[NodeEvent]):
    """One line of a machine's story; `device` is its kind and index, null where it is about the machine."""

    by = serializers.CharField(source="by.username", default=None)
    device = serializers.SerializerMethodField()

    class Meta:
        model = NodeEvent
        fields = ("id", "at", "event", "sentence", "device", "by")

    def get_device(self, event: NodeEvent) -> str | None:
        return f"{event.device.kind}{event.device.index}" if event.device else None


class JoinTokenOut(serializers.ModelSerializer[JoinToken]):
    """A one-time token, without its secret."""

    made_by = serializers.CharField(source="made_by.username", default=None)
    node = serializers.CharField(source="node.name", default=None)

    class Meta:
        model = JoinToken
        fields = ("id", "prefix", "made_by", "made_at", "expires_at", "used_at", "node")


class JoinTokenIn(serializers.Serializer[JoinToken]):
    """How long a new token may be used."""

    hours = serializers.IntegerField(min_value=1, max_value=7 * 24, default=24)


HOST = r"^(?:[0-9A-Za-z][0-9A-Za-z._-]*|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)\Z"
"""A host name, an IPv4 or an IPv6 address; neither port nor path."""


class JoinIn(serializers.Serializer[Node]):
    """What a joining machine says of itself."""

    token = serializers.CharField(max_length=200)
    name = serializers.CharField(max_length=63)
    machine = serializers.RegexField(r"^[0-9a-f]{64}\Z")
    address = serializers.RegexField(HOST, max_length=100)
    probe = serializers.CharField(max_length=32)
    content = serializers.CharField(max_length=100)


class ProbeIn(serializers.Serializer[Node]):
    """A node asks whether its data root is still the server's."""

    name = serializers.CharField(max_length=63)
    machine = serializers.RegexField(r"^[0-9a-f]{64}\Z")
    probe = serializers.CharField(max_length=32)
    content = serializers.CharField(max_length=100)
