"""Quotas and limits during one pass: who may take how much more. Pure."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from workers.scheduler.snapshot import FULL_CARD, Cluster, Snapshot, Waiting

Refusal = tuple[str, Mapping[str, int | str]]


@dataclass(slots=True)
class _QuotaHold:
    """The first job a full cluster could not take: from `start` on it needs its shares."""

    job: int
    start: float
    spare: int


class Ledger:
    """Shares and jobs counted against each cluster and person.

    The first job that only the cluster's quota keeps waiting gets a reservation on the quota, so that
    small jobs of the same cluster cannot starve a large one.
    """

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self._now = now
        self._typical = snapshot.typical_runtime
        self._clusters: dict[int, Cluster] = {c.id: c for c in snapshot.clusters}
        self._used: Counter[int] = Counter()
        self._user_used: Counter[tuple[int, int]] = Counter()
        self._user_jobs: Counter[tuple[int, int]] = Counter()
        self._ends: dict[int, list[tuple[float, int]]] = defaultdict(list)
        self._holds: dict[int, _QuotaHold] = {}
        for run in snapshot.running:
            self._count(run.cluster, run.owner, run.card_shares, run.ends_at)

    def refuse(self, job: Waiting) -> Refusal | None:
        """Why limits keep `job` waiting, or None if they do not."""
        cluster = self._clusters.get(job.cluster)
        if cluster is None:
            return "no_cluster", {}
        who, asked = (job.cluster, job.owner), job.request.card_shares
        if cluster.user_jobs is not None and self._user_jobs[who] >= cluster.user_jobs:
            return "user_jobs", {"running": self._user_jobs[who], "limit": cluster.user_jobs}
        if not asked:
            return None
        limits = cluster.quota(job.request.kind)
        if limits.per_user is not None and self._user_used[who] + asked > limits.per_user * FULL_CARD:
            used = -(-self._user_used[who] // FULL_CARD)
            return "user_cards", {"used": used, "limit": limits.per_user, "asked": _cards(asked)}
        if limits.guaranteed is None:
            return None
        quota, used_shares = limits.guaranteed * FULL_CARD, self._used[job.cluster]
        if used_shares + asked > quota:
            if job.cluster not in self._holds and asked <= quota:
                self._hold(job, quota)
            used = -(-used_shares // FULL_CARD)
            return "cluster_quota", {"used": used, "limit": limits.guaranteed, "asked": _cards(asked)}
        hold = self._holds.get(job.cluster)
        if hold and self._end(job) > hold.start and asked > hold.spare:
            return "reserved", {"job": hold.job}
        return None

    def add(self, job: Waiting) -> None:
        """Count `job` as started."""
        hold = self._holds.get(job.cluster)
        if hold and self._end(job) > hold.start:
            hold.spare -= job.request.card_shares
        end = None if job.runtime is None else self._now + job.runtime
        self._count(job.cluster, job.owner, job.request.card_shares, end)

    def _count(self, cluster: int, owner: int, shares: int, ends_at: float | None) -> None:
        self._used[cluster] += shares
        self._user_used[cluster, owner] += shares
        self._user_jobs[cluster, owner] += 1
        self._ends[cluster].append((self._now + self._typical if ends_at is None else ends_at, shares))

    def _hold(self, job: Waiting, quota: int) -> None:
        used, asked = self._used[job.cluster], job.request.card_shares
        for end, shares in sorted(self._ends[job.cluster]):
            used -= shares
            if used + asked <= quota:
                self._holds[job.cluster] = _QuotaHold(job.job, end, quota - asked - used)
                return

    def _end(self, job: Waiting) -> float:
        return float("inf") if job.runtime is None else self._now + job.runtime


def _cards(shares: int) -> int:
    return -(-shares // FULL_CARD)
