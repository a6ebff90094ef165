"""Cluster members: people added themselves, and everybody in the user groups of the cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import Role, User, UserGroup
from accounts.services import audit, finding
from aiplatform.lib.errors import Invalid, StillInUse
from aiplatform.lib.prepared import PreparedQuery
from workers.core.models import ClusterGroup, Job, Membership, VirtualCluster
from workers.core.states import FINAL
from workers.resources.clusters.clusters import list_names


def managers(*, also: Q | None = None) -> QuerySet[User]:
    """Who manages all clusters by an own or a group's role, and `also` others: whom to ask for access."""
    granting = [role.pk for role in Role.objects.all() if Action.CLUSTER_MANAGE in role.actions]
    by_role = Q(roles__in=granting) | Q(user_groups__roles__in=granting)
    return User.objects.filter(by_role | also if also else by_role, is_active=True).distinct().order_by("pk")


def groups_outside(cluster: VirtualCluster) -> QuerySet[UserGroup]:
    """Groups that were not added to `cluster`, by name."""
    return UserGroup.objects.exclude(cluster_links__cluster=cluster).order_by("name")


def find(*, username: str = "", group: str = "") -> tuple[User | None, UserGroup | None]:
    """Look up the named user and group.

    Raises:
        Invalid: nothing was named, or what does not exist.
    """
    if not username and not group:
        raise Invalid(_("Enter a user or a group."))
    person = User.objects.filter(username=username, is_active=True).first()
    if username and person is None:
        raise Invalid(_("No user is named %(name)s.") % {"name": username[:50]}, field="user")
    user_group = finding.group(group, among=UserGroup.objects.all()) if group else None
    if group and user_group is None:
        raise Invalid(_("No group is named %(name)s.") % {"name": group[:50]}, field="group")
    return person, user_group


@transaction.atomic
def add(cluster: VirtualCluster, people: Iterable[User], *, by: User | None = None) -> int:
    """Add users to a cluster; return the number of new ones. A user's first cluster becomes the current one."""
    added, keys = 0, []
    for person in people:
        row, new = Membership.objects.get_or_create(cluster=cluster, user=person)
        if not new and not row.direct:
            Membership.objects.filter(pk=row.pk).update(direct=True)
        if new:
            audit.record(by, "cluster_member_added", person, cluster=cluster.name)
        added += new
        keys.append(person.pk)
    _choose_current(keys)
    return added


@transaction.atomic
def remove(cluster: VirtualCluster, person: User, *, by: User | None = None) -> bool:
    """Take a person out of a cluster; False where they stay in through a group.

    Raises:
        NotAllowed: they are in charge of the cluster, and `by` does not manage clusters.
        StillInUse: they have jobs there that have not ended; says which.
    """
    if person.user_groups.filter(cluster_links__cluster=cluster).exists():
        Membership.objects.filter(cluster=cluster, user=person).update(direct=False)
        return False
    _check_charge(cluster, [person.pk], by)
    _check_idle(cluster, [person.pk])
    Membership.objects.filter(cluster=cluster, user=person).delete()
    audit.record(by, "cluster_member_removed", person, cluster=cluster.name)
    _choose_current([person.pk])
    return True


@transaction.atomic
def add_group(cluster: VirtualCluster, group: UserGroup, *, by: User | None = None) -> int:
    """Let all present and future members of a group into a cluster; return how many people were new."""
    ClusterGroup.objects.get_or_create(cluster=cluster, group=group)
    audit.record(by, "cluster_group_added", group, cluster=cluster.name)
    before = cluster.memberships.count()
    sync_groups()
    return cluster.memberships.count() - before


@transaction.atomic
def remove_group(cluster: VirtualCluster, group: UserGroup, *, by: User | None = None) -> None:
    """Take a group out of a cluster. Who was added themselves, or is in another of its groups, stays.

    Raises:
        NotAllowed: somebody who would leave is in charge of the cluster, and `by` does not manage clusters.
        StillInUse: somebody who would leave has jobs there that have not ended; says who and which.
    """
    others = cluster.group_links.exclude(group=group).values("group")
    staying = set(User.objects.filter(user_groups__in=others).values_list("pk", flat=True))
    derived = cluster.memberships.filter(direct=False).values_list("user", flat=True)
    _check_charge(cluster, set(derived) - staying, by)
    _check_idle(cluster, set(derived) - staying)
    cluster.group_links.filter(group=group).delete()
    audit.record(by, "cluster_group_removed", group, cluster=cluster.name)
    sync_groups()


@transaction.atomic
def set_administrator(cluster: VirtualCluster, person: User, *, on: bool, by: User | None = None) -> None:
    """Put a member in charge of the cluster's people, priorities and requests, or no longer."""
    if Membership.objects.filter(cluster=cluster, user=person).exclude(administers=on).update(administers=on):
        verb = "cluster_administrator_made" if on else "cluster_administrator_unmade"
        audit.record(by, verb, person, cluster=cluster.name)


@transaction.atomic
def switch(person: User, cluster: VirtualCluster) -> None:
    """Make one of the person's clusters the one that new jobs take by default."""
    memberships = Membership.objects.filter(user=person)
    memberships.exclude(cluster=cluster).filter(is_current=True).update(is_current=False)
    memberships.filter(cluster=cluster).update(is_current=True)


_CURRENT = PreparedQuery(
    lambda user: Membership.objects.filter(user=user).order_by("-is_current", "pk").values_list("cluster")[:1]
)


def current_id(person: User) -> int | None:
    """The id of the cluster new jobs of this person take by default; None for who belongs to none."""
    return next((cluster for (cluster,) in _CURRENT(person.pk)), None)


def current(person: User) -> VirtualCluster | None:
    """The cluster that `current_id` names."""
    key = current_id(person)
    return None if key is None else VirtualCluster.objects.filter(pk=key).first()


@transaction.atomic
def sync_groups() -> None:
    """Bring memberships in line with the clusters' groups: who joined a group is in, who left is out.

    Who left a group while they run jobs in its cluster is out as well; the jobs go on to their end.
    """
    wanted = set(ClusterGroup.objects.exclude(group__users=None).values_list("cluster", "group__users"))
    existing = set(Membership.objects.values_list("cluster", "user"))
    Membership.objects.bulk_create(
        [Membership(cluster_id=cluster, user_id=user, direct=False) for cluster, user in sorted(wanted - existing)]
    )
    gone = [
        (pk, user)
        for pk, cluster, user in Membership.objects.filter(direct=False).values_list("pk", "cluster", "user")
        if (cluster, user) not in wanted
    ]
    Membership.objects.filter(pk__in=[pk for pk, _user in gone]).delete()
    _choose_current({user for _cluster, user in wanted - existing} | {user for _pk, user in gone})


def _choose_current(people: Collection[int]) -> None:
    """Everybody in some cluster has a current one: their first, where they chose none."""
    chosen = Membership.objects.filter(user__in=people, is_current=True).values("user")
    first: dict[int, int] = {}
    rows = Membership.objects.filter(user__in=people).exclude(user__in=chosen).order_by("pk")
    for pk, user in rows.values_list("pk", "user"):
        first.setdefault(user, pk)
    Membership.objects.filter(pk__in=first.values()).update(is_current=True)


def _check_charge(cluster: VirtualCluster, people: Collection[int], by: User | None) -> None:
    """Who is in charge of a cluster goes by themselves, or is sent by who could put them in charge."""
    if by is not None and cluster.memberships.filter(user__in=people, administers=True).exclude(user=by).exists():
        by.require(Action.CLUSTER_MANAGE)


def _check_idle(cluster: VirtualCluster, people: Collection[int]) -> None:
    live = Job.objects.filter(cluster=cluster, owner__in=people).exclude(state__in=FINAL)
    if live.exists():
        raise StillInUse(
            _("The devices are in use: %(jobs)s. Stop these jobs first.") % {"jobs": list_names(live)},
            jobs=live.count(),
        )


def deciders(cluster: VirtualCluster) -> QuerySet[User]:
    """Who may answer requests of a cluster: those in charge of it, and who manages all clusters."""
    in_charge = Q(memberships__in=cluster.memberships.filter(administers=True))
    return managers(also=in_charge)
