"""Resource request in the API: the fields that every submitting route takes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rest_framework import serializers

from aiplatform.lib.api import VisibleField
from workers.core import disk_limits
from workers.core.models import Device, Job, VirtualCluster
from workers.jobs import resource_request


class ResourcesIn(serializers.Serializer):
    """Fields of `resource_request.Resources`. A priority of 100 is urgent; `share` is eighths of one card."""

    cluster = VisibleField(VirtualCluster, required=False, allow_null=True, default=None)
    nodes = serializers.IntegerField(min_value=1, max_value=64, default=1)
    gpus_per_node = serializers.IntegerField(min_value=0, max_value=128, default=0)
    device_kind = serializers.ChoiceField(
        choices=Device.Kind.choices, default=Device.Kind.GPU, help_text="cpu: on CPUs only."
    )
    device_model = serializers.CharField(
        max_length=100, default="", allow_blank=True, help_text="As `/api/v1/devices/kinds/` names it; empty: any."
    )
    share = serializers.IntegerField(min_value=1, max_value=8, default=8)
    cpus = serializers.FloatField(min_value=0.1, max_value=1024, required=False, allow_null=True, default=None)
    memory_mib = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=0)
    max_disk_bytes = serializers.IntegerField(
        min_value=disk_limits.MIN_BYTES, max_value=disk_limits.MAX_BYTES, required=False, allow_null=True, default=None,
        help_text="Most disk space on each node; null: the cluster's limit.",
    )  # fmt: skip
    priority = serializers.IntegerField(min_value=0, max_value=Job.URGENT, default=0)
    preemptible = serializers.BooleanField(default=False)
    max_runtime_s = serializers.IntegerField(
        min_value=60, max_value=31_536_000, required=False, allow_null=True, default=None
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        seconds = attrs.pop("max_runtime_s", None)
        attrs["max_runtime"] = timedelta(seconds=seconds) if seconds else None
        attrs["card_memory_mib"] = dict(resource_request.shares_on_offer()).get(attrs["share"], 0)
        for name in ("cluster", "cpus", "gpus_per_node"):  # left out, the service chooses
            if attrs.get(name, 0) is None:
                del attrs[name]
        return attrs


class RootIn(serializers.Serializer):
    """The field of kinds that can be root inside."""

    root_inside = serializers.BooleanField(default=False, help_text="For people whom an administrator allowed it.")
