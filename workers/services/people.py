"""People as cluster administrators choose them."""

from __future__ import annotations

from django.db.models import QuerySet

from accounts.models import User
from workers.models import VirtualCluster


def outside(cluster: VirtualCluster) -> QuerySet[User]:
    """Active people who are not in `cluster`, by user name."""
    return User.objects.filter(is_active=True).exclude(memberships__cluster=cluster).order_by("username")
