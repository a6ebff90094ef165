"""Virtual clusters: making, changing, deleting them, and who belongs to them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import DomainError, StillInUse
from workers import waking
from workers.models import Allocation, Device, Job, Membership, VirtualCluster
from workers.models.nodes import SHARES_PER_DEVICE
from workers.states import FINAL


class NameTaken(DomainError):
    code = "name_taken"
    field = "name"


@transaction.atomic
def save(
    cluster: VirtualCluster | None,
    *,
    name: str,
    gpu_quota: int | None = None,
    gpus_per_user: int | None = None,
    jobs_per_user: int | None = None,
    max_runtime: timedelta | None = None,
) -> VirtualCluster:
    """Make a cluster (None) or change one. None as a limit means no limit; running jobs keep what they have.

    Raises:
        NameTaken: another cluster has this name.
    """
    row = cluster or VirtualCluster()
    if VirtualCluster.objects.filter(name__iexact=name).exclude(pk=row.pk).exists():
        raise NameTaken(_("There is a cluster named %(name)s already.") % {"name": name})
    row.name, row.gpu_quota, row.max_runtime = name, gpu_quota, max_runtime
    row.gpus_per_user, row.jobs_per_user = gpus_per_user, jobs_per_user
    row.save()
    waking.ring()
    return row


@transaction.atomic
def delete(cluster: VirtualCluster) -> None:
    """Delete an empty cluster.

    Raises:
        StillInUse: it has members or jobs, also ended ones, whose records point to it.
    """
    jobs = Job.objects.filter(cluster=cluster).count()
    if jobs:
        raise StillInUse(
            _("%(name)s cannot be deleted: %(jobs)s jobs were run in it. Take its members out instead.")
            % {"name": cluster.name, "jobs": jobs},
            jobs=jobs,
        )
    members = cluster.memberships.count()
    if members:
        raise StillInUse(
            _("%(name)s still has %(members)s members. Take them out first.")
            % {"name": cluster.name, "members": members},
            members=members,
        )
    cluster.delete()


@transaction.atomic
def add_members(cluster: VirtualCluster, people: Iterable[User]) -> int:
    """Let people into a cluster; return how many were new. A person's first cluster becomes the current one."""
    added = 0
    for person in people:
        first = not person.memberships.exists()
        _row, new = Membership.objects.get_or_create(cluster=cluster, user=person, defaults={"is_current": first})
        added += new
    return added


@transaction.atomic
def remove_member(cluster: VirtualCluster, person: User) -> None:
    """Take a person out of a cluster.

    Raises:
        StillInUse: they have jobs there that have not ended.
    """
    live = Job.objects.filter(cluster=cluster, owner=person).exclude(state__in=FINAL).count()
    if live:
        raise StillInUse(
            _("%(person)s has %(jobs)s jobs in %(name)s that have not ended. Stop them first.")
            % {"person": person, "jobs": live, "name": cluster.name},
            jobs=live,
        )
    Membership.objects.filter(cluster=cluster, user=person).delete()
    left = Membership.objects.filter(user=person)
    if not left.filter(is_current=True).exists():
        Membership.objects.filter(pk__in=left.order_by("pk").values("pk")[:1]).update(is_current=True)


def with_figures(clusters: QuerySet[VirtualCluster]) -> list[VirtualCluster]:
    """`clusters` by name with `people`, `jobs_waiting`, `jobs_live` and `cards_used`."""
    used = (
        Allocation.objects.filter(released_at=None, device__kind=Device.Kind.GPU)
        .values("attempt__job__cluster")
        .annotate(shares=Sum("share"))
    )
    by_cluster = {row["attempt__job__cluster"]: row["shares"] for row in used}
    rows = clusters.annotate(
        people=Count("memberships", distinct=True),
        jobs_waiting=Count("jobs", filter=Q(jobs__state="queued"), distinct=True),
        jobs_live=Count("jobs", filter=~Q(jobs__state="queued") & ~Q(jobs__state__in=FINAL), distinct=True),
    ).order_by("name")
    for row in rows:
        row.cards_used = by_cluster.get(row.pk, 0) / SHARES_PER_DEVICE  # type: ignore[attr-defined]
    return list(rows)
