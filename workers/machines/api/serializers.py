"""Shapes of machines and devices in the API."""

from __future__ import annotations

from rest_framework import serializers

from aiplatform.lib.answers import OutMixin
from aiplatform.lib.message_field import MessageOut
from workers.machines import eviction_policy
from workers.models import Device, JoinToken, Node, NodeEvent


class DeviceOut(OutMixin, serializers.ModelSerializer[Device]):
    """A GPU, or a node's processor; amounts are shares: 8 to a card, 8 to a CPU slot.

    A job without cards takes one CPU slot for each core it asks for. A core is offered as two of them, unless
    `AIP_CPU_OVERCOMMIT` says otherwise.
    """

    node = serializers.CharField(source="node.name")
    health_note = serializers.CharField(
        source="health_message",
        required=False,
        help_text="Why it is not OK, in the caller's language: `health_message` in words.",
    )
    health_message = MessageOut(read_only=True)

    class Meta:
        model = Device
        fields = (
            "id", "node", "kind", "index", "uuid", "model", "memory_mib", "capacity", "used", "group", "health",
            "health_note", "health_message", "parent", "simulated", "sample",
        )  # fmt: skip


class NodeOut(OutMixin, serializers.ModelSerializer[Node]):
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
        return eviction_policy.obstacle(node)


class NodeEventOut(OutMixin, serializers.ModelSerializer[NodeEvent]):
    """One line of a machine's event log; `device` is its kind and index, null where it is about the machine."""

    by = serializers.CharField(source="by.username", default=None)
    device = serializers.SerializerMethodField()
    sentence = serializers.CharField(source="message", read_only=True, help_text="`message` in the caller's language.")
    message = MessageOut(read_only=True)

    class Meta:
        model = NodeEvent
        fields = ("id", "at", "event", "sentence", "message", "device", "by")

    def get_device(self, event: NodeEvent) -> str | None:
        return f"{event.device.kind}{event.device.index}" if event.device else None


class JoinTokenOut(OutMixin, serializers.ModelSerializer[JoinToken]):
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
    """What a joining machine sends about itself."""

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
