"""Virtual clusters: make, change and delete them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform.lib.errors import Invalid, NameTaken, Refusals, StillInUse
from workers.core import disk_limits, scheduler_wakeup
from workers.core.models import Allocation, Device, Job, Membership, VirtualCluster
from workers.core.models.nodes import SHARES_PER_DEVICE
from workers.core.states import FINAL
from workers.planning import planner_input
from workers.planning.planner.snapshot import Quota
from workers.resources.clusters import quotas

MAX_PAUSE = timedelta(hours=24)
"""How long a paused job keeps its devices, where nobody says otherwise."""
NAMED = 3
"""So many jobs are named in a refusal; the others are counted."""


@transaction.atomic
def save(
    cluster: VirtualCluster | None,
    *,
    name: str,
    jobs_per_user: int | None = None,
    environments_per_user: int | None = None,
    max_runtime: timedelta | None = None,
    max_pause: timedelta | None = MAX_PAUSE,
    default_disk_bytes: int | None = None,
    max_disk_bytes: int | None = None,
    approves_environments: bool = False,
    devices: Mapping[str, Quota] | None = None,
    by: User | None = None,
) -> VirtualCluster:
    """Make a cluster (None) or change one. None as a limit means no limit; running jobs keep their cards.

    Args:
        max_pause: how long a paused job keeps its devices; what can save gives them back then, the rest is stopped.
        default_disk_bytes: disk limit of jobs that request none, on each node; None is `max_disk_bytes`.
        max_disk_bytes: the most a job can request, on each node.
        approves_environments: environments wait until somebody in charge of the cluster lets them start.
        devices: quotas by device kind; kinds left out, and None, stay as they are.

    Raises:
        NameTaken: another cluster has this name.
        QuotaTooLarge: more cards guaranteed than there are.
        Invalid: a disk limit out of range, or a default above the maximum.
        StillInUse: a shorter maximum run time would end running jobs at once.
    """
    row, refusals = cluster or VirtualCluster(), Refusals()
    with refusals:
        check_name(name=name, cluster=cluster)
    with refusals:
        if row.pk and max_runtime is not None and (row.max_runtime is None or max_runtime < row.max_runtime):
            _check_runtimes(row, max_runtime)
    with refusals:
        disk_limits.check_of_cluster(default_disk_bytes, max_disk_bytes)
    if refusals and devices is not None:
        with refusals:
            quotas.check(row, devices)
    refusals.end()
    name = name.strip()
    row.name, row.max_runtime, row.max_pause = name, max_runtime, max_pause
    row.jobs_per_user, row.environments_per_user = jobs_per_user, environments_per_user
    row.default_disk_bytes, row.max_disk_bytes = default_disk_bytes, max_disk_bytes
    row.approves_environments = approves_environments
    row.save()
    if devices is not None:
        quotas.set_quotas(row, devices)
    audit.record(by, "cluster_changed" if cluster else "cluster_made", row, **_facts(row))
    scheduler_wakeup.notify()
    return row


def check_name(*, name: str | None = None, cluster: VirtualCluster | None = None) -> None:
    """Refuse an empty name, and one that another cluster has; None is accepted."""
    if name is None:
        return
    name = name.strip()
    if not name:
        raise Invalid(_("Enter a name for the cluster."), field="name")
    others = VirtualCluster.objects.open().filter(name__iexact=name)
    if (others.exclude(pk=cluster.pk) if cluster else others).exists():
        raise NameTaken(_("A cluster named %(name)s already exists.") % {"name": name})


@transaction.atomic
def delete(cluster: VirtualCluster, *, by: User | None = None) -> None:
    """Delete an unused cluster. Its members lose it; ended jobs still show its name.

    Raises:
        StillInUse: jobs wait or run in it; says whose and which.
    """
    live = Job.objects.filter(cluster=cluster).exclude(state__in=FINAL)
    if live.exists():
        raise StillInUse(
            _("%(name)s is in use: %(jobs)s. Wait until they end, or stop them.")
            % {"name": cluster.name, "jobs": list_names(live)},
            jobs=live.count(),
        )
    audit.record(by, "cluster_deleted", cluster)
    Membership.objects.filter(cluster=cluster).delete()
    cluster.group_links.all().delete()
    cluster.quotas.all().delete()
    if Job.objects.filter(cluster=cluster).exists():
        cluster.closed_at = now()
        cluster.save(update_fields=["closed_at"])
    else:
        cluster.delete()


def list_names(jobs: QuerySet[Job]) -> str:
    """Text that names some jobs, for refusals: "Alice runs “first” (#3), Bob waits with “second” (#4) and 2 more"."""
    rows = list(jobs.select_related("owner").order_by("pk")[:NAMED])
    names = [
        (_("“%(job)s” (#%(id)s) of %(person)s is queued") if job.state == "queued" else
         _("“%(job)s” (#%(id)s) of %(person)s is running"))
        % {"person": job.owner.get_full_name(), "job": job.name, "id": job.pk}
        for job in rows
    ]  # fmt: skip
    more = jobs.count() - len(rows)
    text = ", ".join(names)
    return _("%(jobs)s and %(more)s more") % {"jobs": text, "more": more} if more else text


def _count(rows: QuerySet[Any]) -> Coalesce:
    """The number of rows of each cluster."""
    counted = rows.order_by().values("cluster").annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted), 0)


def with_usage(clusters: QuerySet[VirtualCluster]) -> list[VirtualCluster]:
    """`clusters` by name with `people`, `jobs_waiting`, `jobs_live`, `cards_used` and `cores_used`."""
    on_cores = Q(device__kind=Device.Kind.CPU)
    used = (
        Allocation.objects.filter(released_at=None, attempt__evicted_at=None)
        .values("attempt__job__cluster")
        .annotate(cards=Sum("share", filter=~on_cores), cores=Sum("share", filter=on_cores))
    )
    by_cluster: dict[int, Mapping[str, Any]] = {row["attempt__job__cluster"]: row for row in used}
    of_cluster = Job.objects.filter(cluster=OuterRef("pk"))
    rows = clusters.prefetch_related("quotas").annotate(  # one count each: joined, members and jobs would multiply
        people=_count(Membership.objects.filter(cluster=OuterRef("pk"))),
        jobs_waiting=_count(of_cluster.filter(state="queued")),
        jobs_live=_count(of_cluster.exclude(state__in=["queued", *FINAL])),
    )
    annotated: Iterable[VirtualCluster] = rows.order_by("name")
    for row in annotated:
        held = by_cluster.get(row.pk, {})
        row.cards_used = (held.get("cards") or 0) / SHARES_PER_DEVICE  # type: ignore[attr-defined]  # for templates alone
        row.cores_used = (held.get("cores") or 0) / SHARES_PER_DEVICE  # type: ignore[attr-defined]  # as above
    return list(annotated)


def _facts(cluster: VirtualCluster) -> dict[str, object]:
    span = cluster.max_runtime
    cards = {
        kind: {"guaranteed": q.guaranteed, "borrows": q.borrows, "per user": q.per_user}
        for kind, q in planner_input.quotas_of(cluster).items()
    }
    pause = cluster.max_pause
    return {
        "max_runtime_hours": span.total_seconds() / 3600 if span else None,
        "approves_environments": cluster.approves_environments,
        "default_disk_gib": disk_limits.to_gib(cluster.default_disk_bytes),
        "max_disk_gib": disk_limits.to_gib(cluster.max_disk_bytes),
        "max_pause_hours": pause.total_seconds() / 3600 if pause else None,
        "cards": cards,
    }


def _check_runtimes(cluster: VirtualCluster, span: timedelta) -> None:
    begun_before = now() - span
    over = Job.objects.live().filter(cluster=cluster, attempts__ended_at=None, attempts__started_at__lt=begun_before)
    own = over.filter(Q(max_runtime=None) | Q(max_runtime__gt=span))
    if own.exists():
        raise StillInUse(
            _("Running jobs have already exceeded this time and would be stopped immediately: %(jobs)s.")
            % {"jobs": list_names(own)},
            field="max_runtime_hours",
            jobs=own.count(),
        )
