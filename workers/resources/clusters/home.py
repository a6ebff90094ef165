"""The section of the home page about the GPU quota of the user's current cluster."""

from __future__ import annotations

from typing import Any

from django.db.models import FilteredRelation, Q, Sum

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.pages.home.sections import Section
from workers.core.models import Allocation, Device, Membership
from workers.core.models.nodes import SHARES_PER_DEVICE


def gpu_quota(user: User) -> dict[str, Any] | None:
    """Return GPUs of the current cluster: {cluster, guaranteed, borrows, used, mine}; None without a GPU quota."""
    gpu = Q(cluster__quotas__kind=Device.Kind.GPU)
    current = (
        Membership.objects.filter(user=user)
        .annotate(gpu=FilteredRelation("cluster__quotas", condition=gpu))
        .order_by("-is_current", "cluster__name")
        .values("cluster", "cluster__name", "gpu__guaranteed", "gpu__borrows")
        .first()
    )
    if current is None or current["gpu__guaranteed"] is None:
        return None
    held = Allocation.objects.filter(
        released_at=None, device__kind=Device.Kind.GPU, attempt__job__cluster=current["cluster"]
    ).aggregate(all=Sum("share"), mine=Sum("share", filter=Q(attempt__job__owner=user)))
    used, guaranteed = (held["all"] or 0) / SHARES_PER_DEVICE, current["gpu__guaranteed"]
    return {
        "pk": current["cluster"], "cluster": current["cluster__name"], "guaranteed": guaranteed,
        "borrows": current["gpu__borrows"], "used": used, "mine": (held["mine"] or 0) / SHARES_PER_DEVICE,
        "percent": min(100.0, 100 * used / guaranteed) if guaranteed else 100.0 if used else 0.0,
    }  # fmt: skip


QUOTA = Section("quota", "home/_quota.html", gpu_quota, needs=Action.JOBS_SUBMIT, order=30, column="side")
