"""Virtual clusters: who may use how much of the machines."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.models import UserGroup
from workers.core.device_kinds import rules
from workers.core.querysets import ClusterQuerySet


class VirtualCluster(models.Model):
    """A share of all devices for a group of people. A closed one is only there for the jobs it once ran."""

    name = models.CharField(_("name"), max_length=50)
    jobs_per_user = models.PositiveIntegerField(
        _("running jobs per user"), null=True, blank=True, help_text=_("Leave empty for no limit.")
    )
    environments_per_user = models.PositiveIntegerField(
        _("running workspaces per user"), null=True, blank=True, help_text=_("Leave empty for no limit.")
    )
    max_runtime = models.DurationField(
        _("maximum run time"),
        null=True,
        blank=True,
        help_text=_("Jobs are stopped after this time. Default: no limit."),
    )
    max_pause = models.DurationField(
        _("maximum pause"),
        null=True,
        blank=True,
        default=timedelta(hours=24),
        help_text=_("Paused jobs keep their GPUs for this long. Leave empty for no limit."),
    )
    default_disk_bytes = models.PositiveBigIntegerField(
        _("default disk limit (bytes)"),
        null=True,
        blank=True,
        help_text=_("For jobs without a request, on each node. Leave empty to use the maximum."),
    )
    max_disk_bytes = models.PositiveBigIntegerField(
        _("maximum disk limit (bytes)"),
        null=True,
        blank=True,
        help_text=_("The most that a job can request on each node. Leave empty for no limit."),
    )
    approves_environments = models.BooleanField(
        _("workspaces require approval"),
        default=False,
        help_text=_("Jobs start only after a cluster administrator approved them."),
    )
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, through="Membership", related_name="clusters")
    groups = models.ManyToManyField(UserGroup, through="ClusterGroup", related_name="clusters")
    created_at = models.DateTimeField(default=now, editable=False)
    closed_at = models.DateTimeField(null=True, blank=True, editable=False)  # deleted, but jobs still name it

    objects = ClusterQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["name"], condition=Q(closed_at=None), name="cluster_name_once"),
            models.CheckConstraint(
                condition=Q(default_disk_bytes=None)
                | Q(max_disk_bytes=None)
                | Q(default_disk_bytes__lte=F("max_disk_bytes")),
                name="cluster_disk_limits_in_order",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ClusterDevice(models.Model):
    """How many cards of one kind a cluster may use. A kind without a row has no limit."""

    cluster = models.ForeignKey(VirtualCluster, models.CASCADE, related_name="quotas")
    kind = models.CharField(_("device kind"), max_length=8)  # a name of device_kinds.KINDS
    guaranteed = models.PositiveIntegerField(
        _("guaranteed"), null=True, blank=True, help_text=_("GPUs of the cluster itself. Leave empty for no limit.")
    )
    borrows = models.BooleanField(_("borrows idle GPUs"), default=False)
    per_user = models.PositiveIntegerField(
        _("per user"),
        null=True,
        blank=True,
        help_text=_("GPUs that one user can use at once. Leave empty for no limit."),
    )

    class Meta:
        ordering = ["cluster", "kind"]
        constraints = [models.UniqueConstraint(fields=["cluster", "kind"], name="quota_once_per_kind")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.cluster}"

    @property
    def label(self) -> str:
        """The kind's name for people."""
        return rules(self.kind).label


class JobLimit(models.Model):
    """Least and most cores and memory of one job per node, by the kind of device it runs on."""

    CPUS: ClassVar[tuple[float, float]] = (2.0, 22.0)
    MEMORY_MIB: ClassVar[tuple[int, int]] = (400, 80 * 1024)

    cluster = models.ForeignKey(VirtualCluster, models.CASCADE, related_name="job_limits")
    kind = models.CharField(_("device kind"), max_length=8)
    cpus_min = models.FloatField(_("min. cores"), default=CPUS[0])
    cpus_max = models.FloatField(_("max. cores"), default=CPUS[1])
    memory_min_mib = models.PositiveIntegerField(_("min. memory (MiB)"), default=MEMORY_MIB[0])
    memory_max_mib = models.PositiveIntegerField(_("max. memory (MiB)"), default=MEMORY_MIB[1])

    class Meta:
        ordering = ["cluster", "kind"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "kind"], name="job_limit_once_per_kind"),
            models.CheckConstraint(condition=Q(cpus_min__lte=F("cpus_max")), name="job_limit_cpus_in_order"),
            models.CheckConstraint(
                condition=Q(memory_min_mib__lte=F("memory_max_mib")), name="job_limit_memory_in_order"
            ),
        ]

    def __str__(self) -> str:
        return f"bounds of {self.kind} jobs in {self.cluster}"


class Membership(models.Model):
    """A person in a cluster; one of them is the current one in forms.

    There is a row for everybody who belongs to it, whether added themselves (`direct`), through a group of the
    cluster, or both; workers.resources.clusters.members keeps them.
    """

    cluster = models.ForeignKey(VirtualCluster, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    is_current = models.BooleanField(default=False)
    direct = models.BooleanField(default=True, editable=False)
    administers = models.BooleanField(_("administers the cluster"), default=False)
    added_at = models.DateTimeField(default=now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "user"], name="membership_once"),
            models.UniqueConstraint(fields=["user"], condition=Q(is_current=True), name="one_current_cluster"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.cluster}"


class ClusterGroup(models.Model):
    """A user group whose present and future members belong to the cluster."""

    cluster = models.ForeignKey(VirtualCluster, models.CASCADE, related_name="group_links")
    group = models.ForeignKey(UserGroup, models.CASCADE, related_name="cluster_links")
    added_at = models.DateTimeField(default=now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "group"], name="cluster_group_once")]

    def __str__(self) -> str:
        return f"{self.group} in {self.cluster}"
