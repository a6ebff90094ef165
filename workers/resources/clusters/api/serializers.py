"""Shapes of virtual clusters in the API. Memory is MiB, spans are seconds, null limits are none."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from workers.core import disk_limits
from workers.core.models import ClusterDevice, Job, Membership, VirtualCluster
from workers.resources.clusters import bounds

MAX_VALUE = 100_000


def amount() -> serializers.IntegerField:
    """A limit that may be absent."""
    return serializers.IntegerField(min_value=0, max_value=MAX_VALUE, required=False, allow_null=True, default=None)


class QuotaSerializer(StrictMixin, serializers.ModelSerializer[ClusterDevice]):
    """Cards of one kind, or CPU slots (kind `cpu`: one for each core a job asks for), that a cluster may use.

    Null is no limit.
    """

    kind = serializers.CharField(max_length=8)
    guaranteed = amount()
    borrows = serializers.BooleanField(default=False)
    per_user = amount()

    class Meta:
        model = ClusterDevice
        fields = ("kind", "guaranteed", "borrows", "per_user")


class ClusterOut(OutMixin, serializers.ModelSerializer[VirtualCluster]):
    """A virtual cluster; a kind of card that is not named has no limit."""

    max_runtime_s = serializers.SerializerMethodField()
    max_pause_s = serializers.SerializerMethodField()
    devices = QuotaSerializer(source="quotas", many=True)

    class Meta:
        model = VirtualCluster
        fields = (
            "id", "name", "devices", "jobs_per_user", "environments_per_user", "max_runtime_s", "max_pause_s",
            "default_disk_bytes", "max_disk_bytes", "approves_environments", "created_at",
        )  # fmt: skip

    def get_max_runtime_s(self, cluster: VirtualCluster) -> float | None:
        return cluster.max_runtime.total_seconds() if cluster.max_runtime else None

    def get_max_pause_s(self, cluster: VirtualCluster) -> float | None:
        return cluster.max_pause.total_seconds() if cluster.max_pause else None


def _disk_limit(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=disk_limits.MIN_BYTES, max_value=disk_limits.MAX_BYTES, required=False, allow_null=True,
        help_text=help_text,
    )  # fmt: skip


class ClusterIn(StrictMixin, serializers.Serializer[VirtualCluster]):
    """Name and limits. A limit that is left out or null is no limit; kinds of cards left out stay as they are."""

    name = serializers.CharField(max_length=50)
    devices = QuotaSerializer(many=True, required=False)
    jobs_per_user = serializers.IntegerField(min_value=0, max_value=MAX_VALUE, required=False, allow_null=True)
    environments_per_user = serializers.IntegerField(min_value=0, max_value=MAX_VALUE, required=False, allow_null=True)
    approves_environments = serializers.BooleanField(
        required=False, help_text="Workspaces wait for the approval of a cluster manager."
    )
    default_disk_bytes = _disk_limit("Disk limit of jobs that request none, on each node; null: the maximum.")
    max_disk_bytes = _disk_limit("The most disk space a job can request on each node; null: no limit.")
    max_runtime_s = serializers.FloatField(
        min_value=36, max_value=365 * 24 * 3600, required=False, allow_null=True, help_text="Seconds."
    )
    max_pause_s = serializers.FloatField(
        min_value=36,
        max_value=365 * 24 * 3600,
        required=False,
        allow_null=True,
        help_text="Seconds that a paused job keeps its devices; 24 hours unless said, null: no limit.",
    )


class KindOut(serializers.Serializer[Any]):
    """Devices of one kind on all nodes, and how many are not guaranteed to any cluster."""

    kind = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field of that name, not DRF's attribute
    models = serializers.ListField(child=serializers.CharField())
    present = serializers.IntegerField()
    guaranteed = serializers.IntegerField()
    free = serializers.IntegerField()


class BoundsSerializer(StrictMixin, serializers.Serializer[Any]):
    """Least and most cores and memory (MiB) of one job per node, on devices of one kind."""

    kind = serializers.CharField(max_length=8)
    cpus_min = serializers.FloatField(min_value=0)
    cpus_max = serializers.FloatField(min_value=0.1, max_value=bounds.MAX_CPUS)
    memory_min_mib = serializers.IntegerField(min_value=0)
    memory_max_mib = serializers.IntegerField(min_value=1, max_value=bounds.MAX_MEMORY_MIB)


class ClusterMemberOut(OutMixin, serializers.ModelSerializer[Membership]):
    """A member of a cluster. `direct` is false for members through a group only."""

    user = serializers.CharField(source="user.username")

    class Meta:
        model = Membership
        fields = ("user", "direct", "administers", "added_at")


class MembersOut(serializers.Serializer[Any]):
    """Members of a cluster; `groups` are names."""

    people = ClusterMemberOut(many=True)
    groups = serializers.ListField(child=serializers.CharField())


class KindUseOut(serializers.Serializer[Any]):
    """Use of devices of one kind, or of CPU slots, by a cluster; shares of a device are fractions."""

    kind = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field of that name, not DRF's attribute
    present = serializers.IntegerField()
    guaranteed = serializers.IntegerField(allow_null=True)
    borrows = serializers.BooleanField()
    per_user = serializers.IntegerField(allow_null=True)
    used = serializers.FloatField()
    borrowed = serializers.FloatField()
    lent = serializers.FloatField()
    free = serializers.FloatField()


class MemberUseOut(serializers.Serializer[Any]):
    """Devices of a member, and how many jobs run and wait."""

    user = serializers.CharField(source="person.username")
    cards = serializers.FloatField()
    running = serializers.IntegerField()
    waiting = serializers.IntegerField()


class ClusterUseOut(serializers.Serializer[Any]):
    """Current use of a cluster."""

    devices = KindUseOut(many=True)
    people = MemberUseOut(many=True)


class MemberIn(StrictMixin, serializers.Serializer[Any]):
    """One person, by user name, or one group, by name. `administers` puts a person in charge or no longer."""

    user = serializers.CharField(max_length=50, required=False)
    group = serializers.CharField(max_length=50, required=False)
    administers = serializers.BooleanField(required=False, allow_null=True, default=None)


class JobPriorityIn(StrictMixin, serializers.Serializer[Any]):
    """Another priority for one job; 100 is urgent."""

    job = serializers.IntegerField(min_value=1)
    priority = serializers.IntegerField(min_value=0, max_value=Job.URGENT)
