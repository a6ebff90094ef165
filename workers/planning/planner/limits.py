"""Quotas and limits during one pass: who may take how much more. Pure.

Of a kind of device that any cluster is guaranteed some of, a cluster without a number is guaranteed none: all
that it uses is borrowed. What borrows can be called back, so it may take whatever is idle. Work that would not
give way, as its cluster never said that it borrows and its owner not that it is preemptible, may only take what
is guaranteed to nobody.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from workers.core.count_classes import CLASSES
from workers.planning.planner.policy import DEFAULT, Policy
from workers.planning.planner.snapshot import (
    FULL_CARD,
    Cluster,
    Device,
    Node,
    Quota,
    Running,
    Snapshot,
    Waiting,
    cards_of,
)

Refusal = tuple[str, Mapping[str, int | float | str]]


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
class _Hold:
    """The first job that a full account could not take: from `start` on it needs its shares."""

    job: int
    start: float
    spare: int


@dataclass(slots=True)
class _Pool:
    """Up to `capacity` shares of one device kind, and who uses them until when."""

    capacity: int
    used: int = 0
    ends: list[tuple[float, int]] = field(default_factory=list)
    hold: _Hold | None = None

    def add(self, shares: int, end: float) -> None:
        """Count shares as used until `end`."""
        self.used += shares
        self.ends.append((end, shares))

    def hold_for(self, job: int, requested: int) -> None:
        """Keep `requested` shares for `job` from the first moment at which they are free."""
        used = self.used
        for end, shares in sorted(self.ends):
            used -= shares
            if used + requested <= self.capacity:
                self.hold = _Hold(job, end, self.capacity - requested - used)
                return

    def kept_from(self, job: int, requested: int, end: float) -> int | None:
        """The job for which these shares are kept, if they are, from one that would end at `end`."""
        hold = self.hold
        if hold is None or hold.job == job or requested <= hold.spare or end <= hold.start:
            return None
        return hold.job

    def spend(self, job: int, shares: int, end: float) -> None:
        """Take shares that outlive the hold from what it spares."""
        hold = self.hold
        if hold and hold.job != job and end > hold.start:
            hold.spare -= shares


@dataclass(slots=True)
class _Use:
    """What a cluster uses of one device kind, in shares.

    `common` is what nobody is guaranteed, for a cluster without a number of a kind that others have one of.
    """

    quota: Quota
    pool: _Pool
    common: _Pool | None = None
    by_user: Counter[int] = field(default_factory=Counter)


@dataclass(slots=True)
class _Account:
    """What a cluster uses."""

    cluster: Cluster
    kinds: dict[str, _Use] = field(default_factory=dict)
    running: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """Jobs by what they count as, and by person."""

    common: Mapping[str, _Pool] = field(default_factory=dict)
    """What nobody is guaranteed, by kind."""

    def use(self, kind: str) -> _Use:
        """The account of one device kind."""
        use = self.kinds.get(kind)
        if use is None:
            quota = self.cluster.quota(kind)
            common = self.common.get(kind) if quota.guaranteed is None else None
            use = self.kinds[kind] = _Use(quota, _Pool((quota.guaranteed or 0) * FULL_CARD), common)
        return use


class Ledger:
    """Shares and jobs counted against each cluster and person.

    The first job that only the cluster's quota keeps waiting gets a reservation on the quota, so that
    small jobs of the same cluster cannot starve a large one. So does the first one that waits for what is
    guaranteed to nobody.
    """

    def __init__(self, snapshot: Snapshot, now: float, policy: Policy = DEFAULT) -> None:
        self._now = now
        self._typical = snapshot.typical_runtime
        self._guard_s = policy.guard_s
        self._refusals: dict[tuple[str, int, int, int], Verdict] = {}
        self._common = {
            kind: _Pool(shares) for kind, shares in unowned(snapshot.nodes, snapshot.devices, snapshot.clusters).items()
        }
        self._accounts = {c.id: _Account(c, common=self._common) for c in snapshot.clusters}
        for run in snapshot.running:
            account = self._accounts.get(run.cluster)
            if account is not None:
                self._count(account, run.counts_as, run.counted, run.owner, run.ends_at, gives_way=run.preemptible)

    def judge(self, job: Waiting, counted: tuple[str, int] | None = None) -> Verdict:
        """The verdict of limits on `job` now; `counted` is that of its request, where the caller has it."""
        account = self._accounts.get(job.cluster)
        if account is None:
            return Verdict(("no_cluster", {}))
        owner = job.owner
        limit = account.cluster.per_user.get(job.counts_as)
        if limit is not None and (running := account.running[job.counts_as].get(owner, 0)) >= limit:
            return Verdict((CLASSES[job.counts_as].full, {"running": running, "limit": limit}))
        kind, requested = counted or job.request.counted
        use = account.kinds.get(kind) or account.use(kind)
        quota = use.quota
        if quota.per_user is not None and (used := use.by_user.get(owner, 0)) + requested > quota.per_user * FULL_CARD:
            return self._over("user_cores" if kind == "cpu" else "user_cards", used, quota.per_user, requested)
        if quota.guaranteed is None and use.common is None:
            return FREE
        if use.common is not None:
            return BORROWS if job.preemptible else self._in_common(job, kind, requested, use.common)
        pool = use.pool
        inside = pool.used + requested <= pool.capacity
        could = pool.hold is None and requested <= pool.capacity
        if not inside and could and (not quota.borrows or self._now - job.queued_at >= self._guard_s):
            pool.hold_for(job.job, requested)
        if not inside and not quota.borrows:
            code = "cluster_cores" if kind == "cpu" else "cluster_quota"
            return self._over(code, pool.used, quota.guaranteed or 0, requested)
        if pool.hold is not None:
            first = pool.kept_from(job.job, requested, self._end(job))
            if first is not None:
                return Verdict(("reserved", {"job": first}))
        return OWNS if inside else BORROWS

    def _over(self, code: str, used: int, limit: int, requested: int) -> Verdict:
        """Verdict for more shares than a limit in cards or cores leaves: one object for equal values."""
        key = (code, used, limit, requested)
        verdict = self._refusals.get(key)
        if verdict is None:
            facts = {"used": cards_of(used), "limit": limit, "asked": cards_of(requested)}
            verdict = self._refusals[key] = Verdict((code, facts))
        return verdict

    def _in_common(self, job: Waiting, kind: str, requested: int, common: _Pool) -> Verdict:
        """Verdict on work that is not preemptible, in a cluster without guarantees."""
        if common.used + requested > common.capacity:
            if common.hold is None and requested <= common.capacity:
                common.hold_for(job.job, requested)
            code = "guaranteed_cores" if kind == "cpu" else "guaranteed_cards"
            return self._over(code, common.used, common.capacity // FULL_CARD, requested)
        first = common.kept_from(job.job, requested, self._end(job))
        return BORROWS if first is None else Verdict(("reserved", {"job": first}))

    def add(self, job: Waiting) -> None:
        """Count `job` as started."""
        account = self._accounts[job.cluster]
        kind, shares = job.request.counted
        use, end = account.use(kind), self._end(job)
        use.pool.spend(job.job, shares, end)
        if use.common is not None and not job.preemptible:
            use.common.spend(job.job, shares, end)
        ends_at = None if job.runtime is None else end
        self._count(account, job.counts_as, (kind, shares), job.owner, ends_at, gives_way=job.preemptible)

    def quota_facts(self, job: Waiting) -> dict[str, int | float]:
        """Cards used, guaranteed and requested; empty where the cluster has no number."""
        kind, requested = job.request.counted
        use = self._accounts[job.cluster].use(kind)
        if use.quota.guaranteed is None:
            return {}
        return {"used": cards_of(use.pool.used), "limit": use.quota.guaranteed, "asked": cards_of(requested)}

    def quota_gap(self, job: Waiting) -> int:
        """Shares that the cluster has too few for `job`; 0 where its quota does not keep it waiting."""
        kind, requested = job.request.counted
        use = self._accounts[job.cluster].use(kind)
        if use.quota.guaranteed is None or use.quota.borrows:
            return 0
        return max(0, use.pool.used + requested - use.pool.capacity)

    def _count(
        self,
        account: _Account,
        counts_as: str,
        counted: tuple[str, int],
        owner: int,
        ends_at: float | None,
        *,
        gives_way: bool,
    ) -> None:
        account.running[counts_as][owner] += 1
        device_kind, shares = counted
        if shares:
            use = account.use(device_kind)
            end = self._now + self._typical if ends_at is None else ends_at
            use.by_user[owner] += shares
            use.pool.add(shares, end)
            if use.common is not None and not gives_way:
                use.common.add(shares, end)

    def _end(self, job: Waiting) -> float:
        return float("inf") if job.runtime is None else self._now + job.runtime


def unowned(nodes: Iterable[Node], devices: Iterable[Device], clusters: Iterable[Cluster]) -> dict[str, int]:
    """Shares without a guarantee, for each kind of device that some cluster has a guarantee of."""
    owned = _owned(clusters)
    if not owned:
        return {}
    up = {node.id for node in nodes if node.accepts}
    present: Counter[str] = Counter()
    for device in devices:
        if device.healthy and device.node in up:
            present[device.kind] += device.capacity
    return {kind: max(0, present[kind] - shares) for kind, shares in owned.items()}


def borrowed(clusters: Iterable[Cluster], running: Iterable[Running]) -> frozenset[int]:
    """Jobs on cards or cores beyond their cluster's guarantee, which are preempted for the owners of a guarantee.

    They count in the order in which they started. The rest of a guarantee that a job does not fit into whole
    stays empty: the job counts as borrowed. In a cluster without a number that is all preemptible work; what
    is not preemptible stands there on what is guaranteed to nobody.
    """
    clusters = list(clusters)
    owned = _owned(clusters)
    lends = {
        (c.id, kind): quota.guaranteed * FULL_CARD
        for c in clusters
        for kind, quota in c.quotas.items()
        if quota.borrows and quota.guaranteed is not None
    }
    if not lends and not owned:
        return frozenset()
    unnumbered = {(c.id, kind) for c in clusters for kind in owned if c.quota(kind).guaranteed is None}
    used: Counter[tuple[int, str]] = Counter()
    jobs = set()
    for run in sorted(running, key=lambda r: (r.started_at, r.job)):
        kind, shares = run.counted
        key = (run.cluster, kind)
        if shares and key in lends:
            used[key] += shares
            if used[key] > lends[key]:
                jobs.add(run.job)
        elif key in unnumbered and run.preemptible:
            jobs.add(run.job)
    return frozenset(jobs)


def _owned(clusters: Iterable[Cluster]) -> Counter[str]:
    """Guaranteed shares by kind of device; kinds without a guarantee are left out."""
    shares: Counter[str] = Counter()
    for cluster in clusters:
        for kind, quota in cluster.quotas.items():
            if quota.guaranteed:
                shares[kind] += quota.guaranteed * FULL_CARD
    return shares
