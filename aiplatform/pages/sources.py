"""Registrations of the frame: the top bar's cluster, clusters of people, storage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import F, FilteredRelation, Q, QuerySet, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access import clusters
from accounts.access.permissions import Action
from accounts.models import User
from aiplatform import env
from aiplatform.lib import palette, units
from aiplatform.lib.errors import DomainError
from aiplatform.lib.header_sources import ClusterGlance, ClusterName, register_cluster_source, register_trouble_source
from aiplatform.lib.palette import Command, ObjectCommand, Target
from aiplatform.lib.prepared import PreparedQuery
from aiplatform.lib.search import filter_by_text
from datasets.models import DatasetVersion
from workers.core.models import Allocation, Device, Membership, VirtualCluster
from workers.core.models.nodes import SHARES_PER_DEVICE, Node
from workers.resources.clusters import cpu_slots, members
from workers.resources.monitoring import snapshot_reader, trouble
from workers.resources.monitoring.snapshot import Share


def _cards(shares: int) -> str:
    """Format shares as cards: 8 → "1", 12 → "1.5"."""
    return f"{shares / SHARES_PER_DEVICE:.1f}".removesuffix(".0")


#: The reader's clusters, the current one first: (id, name, guaranteed GPUs, whether it borrows); None without a quota.
_CLUSTERS = PreparedQuery(
    lambda user: (
        Membership.objects.filter(user=user)
        .annotate(gpus=FilteredRelation("cluster__quotas", condition=Q(cluster__quotas__kind=Device.Kind.GPU)))
        .order_by("-is_current", "cluster__name")
        .values_list("cluster", "cluster__name", "gpus__guaranteed", "gpus__borrows")
    )
)
#: Shares of all GPUs that work: (all, free); no row without GPUs.
_GPU_SHARES = PreparedQuery(
    lambda: (
        Device.objects.filter(kind=Device.Kind.GPU, health=Device.Health.OK, node__state=Node.State.LIVE)
        .order_by()
        .values("kind")
        .annotate(there=Sum("capacity"), free=Sum(F("capacity") - F("used")))
        .values_list("there", "free")
    )
)


def gpu_shares(cluster: int, guaranteed: int | None, borrows: bool | None) -> tuple[int, int]:
    """Return (free, all) shares of GPUs for a cluster with this quota: its part of all GPUs, less what is held."""
    there, free = next(iter(_GPU_SHARES()), (0, 0))
    if guaranteed is None or borrows:
        return free, there
    held = Allocation.objects.filter(
        released_at=None, device__kind=Device.Kind.GPU, attempt__job__cluster=cluster
    ).aggregate(shares=Sum("share"))
    quota = min(guaranteed * SHARES_PER_DEVICE, there)
    return max(0, min(free, quota - (held["shares"] or 0))), quota


def glance(user: User) -> ClusterGlance:
    """Return the user's current cluster with its free GPUs; their first one without a choice."""
    rows = _CLUSTERS(user.pk)
    if not rows:
        return ClusterGlance(ask=list(members.managers()[:5]) if user.can(Action.JOBS_SUBMIT) else [])
    free, there = gpu_shares(rows[0][0], *rows[0][2:])
    if there:
        text = _("%(free)s of %(all)s GPUs free") % {"free": _cards(free), "all": _cards(there)}
        short_text, lacks = text, False
    else:
        short_text, text, lacks = _without_cards()
    clusters = [ClusterName(pk, name) for pk, name, *_quota in rows]
    current, by_name = clusters[0], sorted(clusters, key=attrgetter("name"))
    return ClusterGlance(current=current, all=by_name, free_words=short_text, sentence=text, lacks_machines=lacks)


def _without_cards() -> tuple[str, str, bool]:
    """(in a word or two, as sentences, whether no machine has joined yet) of a cluster that has no cards."""
    slots = cpu_slots.there()
    if slots.all:
        facts = {"free": units.number(slots.free), "all": units.number(slots.all)}
        sentence = _("%(free)s of %(all)s CPU slots free; this cluster has no GPUs.") % facts
        return _("%(free)s of %(all)s CPU slots free") % facts, f"{sentence} {slots.legend}", False
    if Node.objects.exclude(state=Node.State.REMOVED).exists():
        return _("no node available"), _("No node accepts jobs at the moment. Jobs are queued."), False
    return _("no nodes yet"), _("No node has joined yet. Jobs are queued until the first one joins."), True


def cluster_choices() -> list[tuple[int, str]]:
    """All clusters, for the pages where people are given one."""
    return list(VirtualCluster.objects.open().order_by("name").values_list("pk", "name"))


def clusters_of(user: User) -> list[int]:
    return list(user.memberships.values_list("cluster", flat=True))


def cluster_mates(user: User) -> QuerySet[Any]:
    mine = VirtualCluster.objects.open().filter(memberships__user=user)
    return Membership.objects.filter(cluster__in=mine.values("pk")).values("user")


def lets_people_in(user: User) -> bool:
    return VirtualCluster.objects.administered_by(user).exists() or user.can(Action.CLUSTER_MANAGE)


@transaction.atomic
def put_into_clusters(user: User, chosen: Collection[int], by: User | None) -> None:
    """Make `chosen` the person's clusters; unknown ids and those they have through a group are left out.

    Args:
        by: who changes them, for the audit log; None is the platform itself.

    Raises:
        StillInUse: live jobs hold the person in a cluster they are to leave.
    """
    for cluster in VirtualCluster.objects.filter(memberships__user=user).exclude(pk__in=chosen):
        members.remove(cluster, user, by=by)
    new = VirtualCluster.objects.open().filter(pk__in=chosen).exclude(memberships__user=user)
    for cluster in new.order_by("name"):
        members.add(cluster, [user], by=by)


def leave_all_clusters(user: User, by: User | None) -> None:
    """Take a user out of all clusters, also of those they administer; live jobs keep them in."""
    for cluster in VirtualCluster.objects.filter(memberships__user=user):
        members.set_administrator(cluster, user, on=False, by=by)
        with suppress(DomainError), transaction.atomic():
            members.remove(cluster, user, by=by)


def storage_shares() -> Iterable[Share]:
    """Return how much of their storage people use; nothing where there is no limit."""
    if not env.STORAGE_QUOTA_BYTES:
        return
    own = DatasetVersion.objects.filter(images_root="", parent=None)
    sums = own.values_list("dataset__owner", "dataset__owner__username").annotate(bytes=Sum("size_bytes")).order_by()
    for pk, name, used in sums:
        yield Share(name, 100 * (used or 0) / env.STORAGE_QUOTA_BYTES, user=pk)


def guard_admin_site() -> None:
    """Restrict Django's admin site to users with all actions of an administrator."""

    def has_permission(request: HttpRequest) -> bool:
        user = request.user
        return bool(user.is_authenticated and user.is_active and user.runs_admin and not user.must_change_password)

    admin.site.has_permission = has_permission  # type: ignore[method-assign]  # replaced on purpose: one rule for all of the admin site
    admin.site.unregister(Group)  # our own groups carry roles; Django's carry nothing here


def other_clusters(user: User, text: str, limit: int) -> Iterator[Target]:
    """Yield the clusters of the user that can become the current one."""
    clusters = VirtualCluster.objects.open().filter(memberships__user=user, memberships__is_current=False)
    for cluster in filter_by_text(clusters, text, "name").order_by("name")[:limit]:
        yield Target(cluster.name, reverse("switch-cluster"), fields={"cluster": str(cluster.pk), "next": ""})


SWITCH_CLUSTER = ObjectCommand(
    "clusters.switch", gettext_lazy("Switch to cluster %(name)s"), "clusters", Action.JOBS_SUBMIT, find=other_clusters
)
COMMANDS = (
    Command("theme.light", gettext_lazy("Light theme"), "sun", Action.SELF_MANAGE, press='[data-theme-set="light"]'),
    Command("theme.dark", gettext_lazy("Dark theme"), "moon", Action.SELF_MANAGE, press='[data-theme-set="dark"]'),
    Command("theme.system", gettext_lazy("System theme"), "screen", Action.SELF_MANAGE, press='[data-theme-set=""]'),
    Command("side.fold", gettext_lazy("Collapse side bar"), "sidebar", Action.OVERVIEW_VIEW, press="[data-side-fold]"),
    Command(
        "keys", gettext_lazy("Keyboard shortcuts"), "keyboard", Action.OVERVIEW_VIEW, press="[data-shortcuts-open]"
    ),
    Command("help", gettext_lazy("Help"), "help", Action.OVERVIEW_VIEW, "help"),
)


def register() -> None:
    """Called once, when all apps are loaded."""
    clusters.register(
        clusters.Memberships(
            choices=cluster_choices,
            ids_for_user=clusters_of,
            replace_clusters=put_into_clusters,
            leave_all=leave_all_clusters,
            mates=cluster_mates,
            chooses_among_all=lets_people_in,
        )
    )
    register_cluster_source(glance)
    palette.register(*COMMANDS)
    palette.register_on_objects(SWITCH_CLUSTER)
    register_trouble_source(trouble.sentences)
    snapshot_reader.register_shares(storage_shares)
