"""What a person may see of machines and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.db.models import QuerySet

from accounts.permissions import Action
from accounts.querysets import OwnedQuerySet
from workers.states import FINAL, LIVE, JobState

if TYPE_CHECKING:
    from accounts.models import User


class JobQuerySet(OwnedQuerySet):
    def waiting(self) -> Self:
        return self.filter(state=JobState.QUEUED)

    def live(self) -> Self:
        return self.filter(state__in=LIVE)

    def ended(self) -> Self:
        return self.filter(state__in=FINAL)


class ClusterQuerySet(QuerySet[Any]):
    def visible_to(self, user: User) -> Self:
        """Clusters this person belongs to; all for those who manage them."""
        if user.can(Action.CLUSTER_MANAGE):
            return self
        return self.filter(memberships__user=user)


class MachineQuerySet(QuerySet[Any]):
    def visible_to(self, user: User) -> Self:
        """Nodes and devices are no secret among people who may see the cluster pages."""
        return self if user.can(Action.CLUSTER_VIEW) else self.none()


class JoinTokenQuerySet(QuerySet[Any]):
    def visible_to(self, user: User) -> Self:
        """Only those who manage machines know of them."""
        return self if user.can(Action.CLUSTER_MANAGE) else self.none()
