"""What a person may see of machines and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.db.models import Q, QuerySet

from accounts.access.permissions import Action
from accounts.access.querysets import OwnedQuerySet, UnownedQuerySet
from aiplatform.lib import search
from workers.core.states import FINAL, LIVE, JobState

if TYPE_CHECKING:
    from accounts.models import User
    from workers.core.models import VirtualCluster


class JobQuerySet(OwnedQuerySet):
    def waiting(self) -> Self:
        return self.filter(state=JobState.QUEUED)

    def live(self) -> Self:
        return self.filter(state__in=LIVE)

    def forcible_by(self, user: User) -> Self:
        """Jobs whose end this person may force: those of clusters in his charge, for operators all."""
        if user.can(Action.TASKS_MANAGE):
            return self
        if not user.can(Action.CLUSTER_ADMINISTER):
            return self.none()
        return self.filter(
            cluster__in=user.memberships.filter(administers=True, cluster__closed_at=None).values("cluster")
        )

    def ended(self) -> Self:
        return self.filter(state__in=FINAL)


class ArrayQuerySet(OwnedQuerySet):
    """Arrays of jobs: those of the jobs one may see."""

    def for_list(self) -> Self:
        return self.select_related("owner", "cluster")


class ClusterQuerySet(UnownedQuerySet):
    def open(self) -> Self:
        """Clusters that have not been deleted."""
        return self.filter(closed_at=None)

    def visible_to(self, user: User) -> Self:
        """Clusters this person belongs to; all for those who manage them."""
        if user.can(Action.CLUSTER_MANAGE):
            return self.open()
        return self.open().filter(memberships__user=user)

    def administered_by(self, user: User) -> Self:
        """Clusters whose people, priorities and requests this person may decide on."""
        if user.can(Action.CLUSTER_MANAGE):
            return self.open()
        if not user.can(Action.CLUSTER_ADMINISTER):
            return self.none()
        return self.open().filter(memberships__user=user, memberships__administers=True)


class RequestQuerySet(UnownedQuerySet):
    """Requests about jobs to those in charge of their clusters."""

    def visible_to(self, user: User) -> Self:
        """Requests about one's own jobs, and those that one may answer."""
        if user.can(Action.CLUSTER_MANAGE):
            return self
        condition = Q(job__owner=user)
        if user.can(Action.CLUSTER_ADMINISTER):
            administered = user.memberships.filter(administers=True, cluster__closed_at=None).values("cluster")
            condition |= Q(job__cluster__in=administered)
        return self.filter(condition)

    def answerable_by(self, user: User) -> Self:
        """Requests of clusters one is in charge of."""
        if user.can(Action.CLUSTER_MANAGE):
            return self
        if not user.can(Action.CLUSTER_ADMINISTER):
            return self.none()
        administered = user.memberships.filter(administers=True, cluster__closed_at=None).values("cluster")
        return self.filter(job__cluster__in=administered)

    def for_list(self) -> Self:
        return self.select_related("job__owner", "job__cluster", "answered_by")

    def answered_in(self, cluster: VirtualCluster) -> Self:
        """Requests of a cluster that were answered, newest first."""
        return self.filter(job__cluster=cluster).exclude(answer="open").select_related("job__owner", "answered_by")


class ApprovalQuerySet(RequestQuerySet):
    def holding(self) -> Self:
        """Approvals that a waiting job still needs: once a cluster asks for none any more, its jobs may start."""
        return self.filter(answer="open", job__state=JobState.QUEUED, job__cluster__approves_environments=True)

    def waiting_in(self, cluster: VirtualCluster) -> Self:
        """Approvals of a cluster that wait for an answer, oldest first."""
        return self.holding().filter(job__cluster=cluster).select_related("job__owner", "job__cluster").order_by("pk")


class TimeRequestQuerySet(RequestQuerySet):
    def waiting_in(self, cluster: VirtualCluster) -> Self:
        """Requests of a cluster that wait for an answer, oldest first. Jobs that ended need none."""
        rows = self.filter(job__cluster=cluster, answer="open").exclude(job__state__in=FINAL)
        return rows.select_related("job__owner", "job__cluster", "requested_by").order_by("pk")


class ResourceGroupQuerySet(UnownedQuerySet):
    def visible_to(self, user: User) -> Self:
        """What machines are kept for is no secret among people who may see them."""
        return self if user.can(Action.CLUSTER_VIEW) else self.none()

    def for_list(self) -> Self:
        return self.prefetch_related("nodes", "windows")


class MachineQuerySet(UnownedQuerySet):
    def visible_to(self, user: User) -> Self:
        """Nodes and devices are no secret among people who may see the cluster pages."""
        return self if user.can(Action.CLUSTER_VIEW) else self.none()


class JoinTokenQuerySet(UnownedQuerySet):
    def visible_to(self, user: User) -> Self:
        """Only those who manage machines know of them."""
        return self if user.can(Action.CLUSTER_MANAGE) else self.none()

    def for_list(self) -> Self:
        return self.select_related("made_by", "node")


class OfClusterQuerySet(QuerySet[Any]):
    def visible_to(self, user: User) -> Self:
        """Rows of the clusters this person belongs to; all for those who manage them."""
        if user.can(Action.CLUSTER_MANAGE):
            return self
        return self.filter(cluster__memberships__user=user)


class AlarmQuerySet(UnownedQuerySet):
    def visible_to(self, user: User) -> Self:
        """Alarms and their rules are a matter of those who manage the machines."""
        return self if user.can(Action.CLUSTER_MANAGE) else self.none()

    def narrowed(self, *, severity: str = "", rule: str = "", query: str = "") -> Self:
        """Alarms of a severity, of a rule (its key), with each of the words in what they are about; "" for all."""
        rows = self.filter(severity=severity) if severity else self
        rows = rows.filter(rule__key=rule) if rule else rows
        return search.filter_by_text(rows, query, "subject")
