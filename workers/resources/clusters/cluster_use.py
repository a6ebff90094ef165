"""Who uses what of a cluster now: guaranteed, used, borrowed and lent cards; people; borrowed jobs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from django.db.models import Count, Q

from accounts.models import User
from workers.core.clock import now
from workers.core.device_kinds import CPU
from workers.core.models import Job, VirtualCluster
from workers.core.states import FINAL, JobState
from workers.planning import planner_input
from workers.planning.planner.limits import borrowed
from workers.planning.planner.snapshot import FULL_CARD, NO_QUOTA, Running
from workers.resources.clusters import quotas


@dataclass(frozen=True)
class KindUse:
    """Use of devices of one kind, or CPU slots, by a cluster; shares of a device are fractions.

    `lent` are cards of the cluster's own that others borrow at the moment: it gets them back when it asks.
    `free` is what a job of the cluster could be given now.
    """

    kind: str
    label: str
    present: int
    guaranteed: int | None
    borrows: bool
    per_user: int | None
    used: float
    borrowed: float
    lent: float
    free: float

    @property
    def within(self) -> float:
        """Used, without what is borrowed."""
        return self.used - self.borrowed

    @property
    def scale(self) -> float:
        """The value of a full bar: the cluster's own devices, or all of them."""
        return max(self.used, self.present if self.guaranteed is None else self.guaranteed, 1)


@dataclass(frozen=True)
class PersonUse:
    """What one person has in a cluster now; `cores` are those of jobs without cards."""

    person: User
    cards: float
    cores: float
    running: int
    waiting: int


def by_kind(cluster: VirtualCluster) -> list[KindUse]:
    """The cluster's part of every kind of card there is."""
    running = planner_input.holding(now())
    lent = borrowed(planner_input.clusters(), running)
    return [_use(cluster, kind, running, lent) for kind in quotas.kinds_for(cluster)]


def people(cluster: VirtualCluster) -> list[PersonUse]:
    """Users with live jobs in the cluster, most devices first, then most CPU slots."""
    cards: Counter[int] = Counter()
    cores: Counter[int] = Counter()
    for run in planner_input.holding(now()):
        if run.cluster == cluster.pk:
            kind, shares = run.counted
            (cores if kind == CPU.name else cards)[run.owner] += shares
    live = Q(jobs__cluster=cluster) & ~Q(jobs__state__in=FINAL)
    waits = Q(jobs__state=JobState.QUEUED)
    rows = User.objects.filter(live).annotate(
        n_running=Count("jobs", filter=live & ~waits, distinct=True),
        n_waiting=Count("jobs", filter=live & waits, distinct=True),
    )
    uses = [
        PersonUse(row, cards[row.pk] / FULL_CARD, cores[row.pk] / FULL_CARD, row.n_running, row.n_waiting)
        for row in rows.distinct()
    ]
    return sorted(uses, key=lambda use: (-use.cards, -use.cores, -use.running, use.person.username))


def is_borrowed(job: Job) -> bool:
    """Whether the job runs on cards or cores beyond its cluster's guarantee, so that others may take them back."""
    if not job.is_live:
        return False
    quota = planner_input.quotas_of(job.cluster).get(job.device_kind if job.gpus_per_node else CPU.name, NO_QUOTA)
    if not quota.borrows and (quota.guaranteed is not None or not job.preemptible):
        return False
    return job.pk in borrowed(planner_input.clusters(), planner_input.holding(now()))


def _use(
    cluster: VirtualCluster, kind: quotas.KindPresent, running: tuple[Running, ...], lent_to: frozenset[int]
) -> KindUse:
    quota = planner_input.quotas_of(cluster).get(kind.kind, NO_QUOTA)
    taken = [(run.cluster, run.counted[1]) for run in running if run.counted[0] == kind.kind]
    used = sum(shares for of, shares in taken if of == cluster.pk) / FULL_CARD
    idle = max(0.0, kind.present - sum(shares for _of, shares in taken) / FULL_CARD)
    if quota.guaranteed is None:
        runs = [run for run in running if run.cluster == cluster.pk and run.counted[0] == kind.kind]
        over = sum(run.counted[1] for run in runs if run.job in lent_to) / FULL_CARD
        return KindUse(kind.kind, kind.label, kind.present, None, quota.borrows, quota.per_user, used, over, 0.0, idle)
    unused = max(0.0, quota.guaranteed - used)
    lent = min(max(0.0, unused - idle), float(kind.present))
    free = idle if quota.borrows else min(idle, unused)
    return KindUse(
        kind.kind, kind.label, kind.present, quota.guaranteed, quota.borrows, quota.per_user, used,
        max(0.0, used - quota.guaranteed), lent, free,
    )  # fmt: skip
