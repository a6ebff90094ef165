"""Shapes of machines and devices in the API."""

from __future__ import annotations

from functools import cached_property

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from aiplatform.lib.answers import OutMixin
from aiplatform.lib.message_field import MessageOut
from workers.core import pins
from workers.core.models import Device, JoinToken, Node, NodeEvent
from workers.resources.nodes import card_catalogue, eviction_policy, mps_policy, scratch_disk


class KnownCardOut(serializers.Serializer[card_catalogue.KnownCard]):
    """Published peak rates of a card in TFLOPS without sparsity, and its memory; null where no source says.

    `bandwidth` is GB/s between the card and its memory; `sources` are where the figures were read.
    """

    fp64 = serializers.FloatField(allow_null=True)
    fp32 = serializers.FloatField(allow_null=True)
    mixed = serializers.FloatField(allow_null=True)
    memory_gb = serializers.IntegerField()
    bandwidth = serializers.IntegerField()
    sources = serializers.ListField(child=serializers.CharField())


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
    known = serializers.SerializerMethodField()

    class Meta:
        model = Device
        fields = (
            "id", "node", "kind", "index", "uuid", "model", "memory_mib", "capacity", "used", "group", "health",
            "health_note", "health_message", "parent", "simulated", "sample", "known",
        )  # fmt: skip

    @extend_schema_field(KnownCardOut(allow_null=True))
    def get_known(self, device: Device) -> dict[str, object] | None:
        known_card = None if device.simulated else card_catalogue.find(device.model)
        return dict(KnownCardOut(known_card).data) if known_card else None


class DeviceRulesOut(serializers.Serializer):
    """A type of device and its rules; a request names it by `device_kind` and `device_model`."""

    kind = serializers.CharField(source="kind.name")
    model = serializers.CharField(help_text="If empty, any model of the type.")
    title = serializers.CharField(source="label", help_text="In the caller's language.")
    counts = serializers.ListField(
        child=serializers.IntegerField(), help_text="Numbers of devices that a job may request per node."
    )
    distributed_count = serializers.IntegerField(
        allow_null=True, help_text="Number of devices per node that a multi-node job must request; null: any number."
    )
    crosses_groups = serializers.BooleanField(source="kind.crosses_groups")
    groups = serializers.ListField(child=serializers.CharField(), help_text="Indices of each group, such as 0–3.")
    shareable = serializers.BooleanField(source="kind.shareable")
    most = serializers.IntegerField(help_text="Devices of the largest node.")
    machines = serializers.IntegerField()
    devices = serializers.IntegerField()
    sentences = serializers.ListField(child=serializers.CharField(), help_text="The rules in the caller's language.")


class NodeOut(OutMixin, serializers.ModelSerializer[Node]):
    """A machine with its devices. `evicts_not` says why no work may be moved off its cards; empty: it may."""

    devices = DeviceOut(many=True)
    evicts_not = serializers.SerializerMethodField()
    keeps = serializers.SerializerMethodField(
        help_text="How many jobs keep packages there, and start nowhere else: live, waiting, over."
    )

    advice = serializers.SerializerMethodField(
        help_text="Recommended memory for the GPUs of the node; empty: it has enough."
    )
    scratch = serializers.SerializerMethodField(
        help_text="Where jobs keep decoded images and temporary files, and what disk that is."
    )

    mps_not = serializers.SerializerMethodField(
        help_text="Why jobs on GPU shares would not use MPS, as reported by the agent; empty: unknown."
    )
    mps_gain = serializers.SerializerMethodField(help_text="What MPS gained when that was measured; empty: never.")

    class Meta:
        model = Node
        fields = (
            "id", "name", "state", "drain", "address", "heartbeat_at", "cpu_cores", "memory_mib", "sandbox_tier",
            "joined_at", "evicts", "evicts_not", "keeps", "devices", "advice",
            "scratch", "mps", "mps_not", "mps_gain",
        )  # fmt: skip

    def get_mps_not(self, node: Node) -> list[str]:
        return [str(why) for why in mps_policy.obstacles(node)]

    def get_mps_gain(self, node: Node) -> str:
        return mps_policy.gained(node)

    def get_advice(self, node: Node) -> str:
        return card_catalogue.advice_of(node)

    def get_scratch(self, node: Node) -> str:
        return scratch_disk.describe(node)

    def get_keeps(self, node: Node) -> dict[str, int]:
        return vars(self._pins.get(node.name, pins.Kept()))

    @cached_property
    def _pins(self) -> dict[str, pins.Kept]:
        return pins.count_by_node()  # once for all machines of a list

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
        fields = ["id", "prefix", "made_by", "made_at", "expires_at", "used_at", "node"]


class JoinTokenMade(JoinTokenOut):
    """A new token with its secret."""

    token = serializers.SerializerMethodField()

    class Meta(JoinTokenOut.Meta):
        fields = [*JoinTokenOut.Meta.fields, "token"]

    def get_token(self, _row: JoinToken) -> str:
        return str(self.context["token"])


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
