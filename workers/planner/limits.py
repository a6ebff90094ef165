"""Quotas and limits during one pass: who may take how much more. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from workers.count_classes import CLASSES
from workers.planner.policy import DEFAULT, Policy
from workers.planner.snapshot import FULL_CARD, Cluster, Quota, Running, Snapshot, Waiting

Refusal = tuple[str, Mapping[str, int | str]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What limits say to a job.

    `refused` is why they keep it waiting. A job that may start lies inside a number that was guaranteed to
    its cluster (`owns`), or beyond it (`borrows`), or there is no such number.
    """

    refused: Refusal | None = None
    owns: bool = False
    borrows: bool = False


FREE, OWNS, BORROWS = Verdict(), Verdict(owns=True), Verdict(borrows=True)


@dataclass(slots=True)
class _QuotaHold:
    """The first job a full cluster could not take: from `start` on it needs its shares."""

    job: int
    start: float
    spare: int


@dataclass(slots=True)
class _Use:
    """What a cluster uses of one device kind, in shares."""

    quota: Quota
    used: int = 0
    by_user: Counter[int] = field(default_factory=Counter)
    ends: list[tuple[float, int]] = field(default_factory=list)
    hold: _QuotaHold | None = None


@dataclass(slots=True)
class _Account:
    """What a cluster uses."""

    cluster: Cluster
    kinds: dict[str, _Use] = field(default_factory=dict)
    running: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """Jobs by what they count as, and by person."""

    def use(self, kind: str) -> _Use:
        """The account of one device kind."""
        found = self.kinds.get(kind)
        if found is None:
            found = self.kinds[kind] = _Use(self.cluster.quota(kind))
        return found


class Ledger:
    """Shares and jobs counted against each cluster and person.

    The first job that only the cluster's quota keeps waiting gets a reservation on the quota, so that
    small jobs of the same cluster cannot starve a large one.
    """

    def __init__(self, snapshot: Snapshot, now: float, policy: Policy = DEFAULT) -> None:
        self._now = now
        self._typical = snapshot.typical_runtime
        self._guard_s = policy.guard_s
        self._accounts = {c.id: _Account(c) for c in snapshot.clusters}
        for run in snapshot.running:
            account = self._accounts.get(run.cluster)
            if account is not None:
                self._count(account, run.counts_as, run.counted, run.owner, run.ends_at)

    def judge(self, job: Waiting) -> Verdict:
        """What limits say to `job` as things stand."""
        account = self._accounts.get(job.cluster)
        if account is None:
            return Verdict(("no_cluster", {}))
        owner = job.owner
        most = account.cluster.per_user.get(job.counts_as)
        if most is not None and (running := account.running[job.counts_as][owner]) >= most:
            return Verdict((CLASSES[job.counts_as].full, {"running": running, "limit": most}))
        kind, requested = job.request.counted
        use = account.use(kind)
        quota = use.quota
        if quota.per_user is not None and use.by_user[owner] + requested > quota.per_user * FULL_CARD:
            facts = {"used": _cards(use.by_user[owner]), "limit": quota.per_user, "asked": _cards(requested)}
            return Verdict(("user_cores" if kind == "cpu" else "user_cards", facts))
        if quota.guaranteed is None:
            return FREE
        inside = use.used + requested <= quota.guaranteed * FULL_CARD
        could = use.hold is None and requested <= quota.guaranteed * FULL_CARD
        if not inside and could and (not quota.borrows or self._now - job.queued_at >= self._guard_s):
            self._hold(use, job, requested)
        if not inside and not quota.borrows:
            facts = {"used": _cards(use.used), "limit": quota.guaranteed, "asked": _cards(requested)}
            return Verdict(("cluster_cores" if kind == "cpu" else "cluster_quota", facts))
        hold = use.hold
        if hold and hold.job != job.job and requested > hold.spare and self._end(job) > hold.start:
            return Verdict(("reserved", {"job": hold.job}))
        return OWNS if inside else BORROWS

    def add(self, job: Waiting) -> None:
        """Count `job` as started."""
        account = self._accounts[job.cluster]
        kind, shares = job.request.counted
        hold = account.use(kind).hold
        if hold and hold.job != job.job and self._end(job) > hold.start:
            hold.spare -= shares
        end = None if job.runtime is None else self._now + job.runtime
        self._count(account, job.counts_as, (kind, shares), job.owner, end)

    def quota_facts(self, job: Waiting) -> dict[str, int]:
        """Cards used, guaranteed and requested, where the cluster has a number."""
        kind, requested = job.request.counted
        use = self._accounts[job.cluster].use(kind)
        return {"used": _cards(use.used), "limit": use.quota.guaranteed or 0, "asked": _cards(requested)}

    def quota_gap(self, job: Waiting) -> int:
        """Shares that the cluster has too few for `job`; 0 where its quota does not keep it waiting."""
        kind, requested = job.request.counted
        use = self._accounts[job.cluster].use(kind)
        if use.quota.guaranteed is None or use.quota.borrows:
            return 0
        return max(0, use.used + requested - use.quota.guaranteed * FULL_CARD)

    def _count(
        self, account: _Account, counts_as: str, counted: tuple[str, int], owner: int, ends_at: float | None
    ) -> None:
        account.running[counts_as][owner] += 1
        device_kind, shares = counted
        if shares:
            use = account.use(device_kind)
            use.used += shares
            use.by_user[owner] += shares
            use.ends.append((self._now + self._typical if ends_at is None else ends_at, shares))

    def _hold(self, use: _Use, job: Waiting, requested: int) -> None:
        used, most = use.used, (use.quota.guaranteed or 0) * FULL_CARD
        for end, shares in sorted(use.ends):
            used -= shares
            if used + requested <= most:
                use.hold = _QuotaHold(job.job, end, most - requested - used)
                return

    def _end(self, job: Waiting) -> float:
        return float("inf") if job.runtime is None else self._now + job.runtime


def borrowed(clusters: Iterable[Cluster], running: Iterable[Running]) -> frozenset[int]:
    """Jobs on cards or cores beyond their cluster's guarantee, counted in the order in which they started.

    The rest of a guarantee that a job does not fit into whole stays empty: the job counts as borrowed.
    """
    quotas = {
        (c.id, kind): quota.guaranteed * FULL_CARD
        for c in clusters
        for kind, quota in c.quotas.items()
        if quota.borrows and quota.guaranteed is not None
    }
    if not quotas:
        return frozenset()
    used: Counter[tuple[int, str]] = Counter()
    found = set()
    for run in sorted(running, key=lambda r: (r.started_at, r.job)):
        kind, shares = run.counted
        key = (run.cluster, kind)
        if shares and key in quotas:
            used[key] += shares
            if used[key] > quotas[key]:
                found.add(run.job)
    return frozenset(found)


def _cards(shares: int) -> int:
    return -(-shares // FULL_CARD)
