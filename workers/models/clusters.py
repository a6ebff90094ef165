"""Virtual clusters: who may use how much of the machines."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from workers.querysets import ClusterQuerySet


class VirtualCluster(models.Model):
    """A share of all devices for a group of people."""

    name = models.CharField(_("name"), max_length=50, unique=True)
    gpu_quota = models.PositiveIntegerField(
        _("GPUs"), null=True, blank=True, help_text=_("Cards this cluster may use at once. Empty: all there are.")
    )
    gpus_per_user = models.PositiveIntegerField(
        _("GPUs per person"), null=True, blank=True, help_text=_("Cards one person may use at once. Empty: no limit.")
    )
    jobs_per_user = models.PositiveIntegerField(
        _("running jobs per person"), null=True, blank=True, help_text=_("Empty: no limit.")
    )
    max_runtime = models.DurationField(
        _("maximum run time"), null=True, blank=True, help_text=_("Jobs end after this time. Empty: no limit.")
    )
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, through="Membership", related_name="clusters")
    created_at = models.DateTimeField(default=now, editable=False)

    objects = ClusterQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person in a cluster; one of them is the current one in forms."""

    cluster = models.ForeignKey(VirtualCluster, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    is_current = models.BooleanField(default=False)
    added_at = models.DateTimeField(default=now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.cluster}"
