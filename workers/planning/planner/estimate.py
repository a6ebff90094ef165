"""When waiting jobs will probably start. Pure.

List scheduling on counted slots: the cards (or cores) of the machines, of the cluster's quota, of the person's
limit, and, for a job that would not give way, of what is guaranteed to nobody. Topology is left out on purpose:
this is an estimate for people, not a promise. It is only made of ends that are known: slots of work without a limit
or a time left never become free, so jobs that need them have no estimate. Far back in the queue slots are no longer
told apart: work flows through them at the rate that they have together.
"""

import math
from collections import Counter
from collections.abc import Iterable
from heapq import heappop, heappush, heapreplace
from itertools import islice
from typing import NamedTuple

from workers.planning.planner.limits import unowned
from workers.planning.planner.snapshot import FULL_CARD, Running, Snapshot, Waiting

MAX_CORES = 512
"""More cores than this are counted in bundles, which keeps a pass short."""
MAX_GROUPS = 1000
"""Jobs whose slots are looked for one by one."""


def starts(snapshot: Snapshot, running: Iterable[Running], waiting: Iterable[Waiting], now: float) -> dict[int, float]:
    """Estimated start in unix seconds by job. A job that no number of slots can hold, or that has to wait for work
    whose end nobody knows, is left out.

    Args:
        running: what holds devices after this pass.
        waiting: what still waits, in the order of the queue.
    """
    slots = _Slots(snapshot, running, now)
    start_by_job: dict[int, float] = {}
    queue = iter(waiting)
    for reserve, jobs in ((slots.reserve, islice(queue, MAX_GROUPS)), (slots.flow, queue)):
        for job in jobs:
            start = reserve(job)
            if start is not None and start < math.inf:
                start_by_job[job.job] = start
    return start_by_job


class _Bank:
    """Some equal slots: a heap of the moments at which they become free, or one level for all of them."""

    __slots__ = ("heap", "level", "width")

    def __init__(self, width: int, now: float) -> None:
        self.heap = [now] * width
        self.width = width
        self.level: float | None = None

    def filled_to(self) -> float:
        """The mean moment at which its slots become free."""
        if self.level is None:
            self.level = sum(self.heap) / self.width
        return self.level


class _Limits(NamedTuple):
    """Card slots and job slots that a person's work takes besides the machines'."""

    cards: list[_Bank]
    jobs: list[_Bank]


def end_of(run: Running, now: float, typical: float) -> float:
    """Its end for reservations; if unknown, work that outran the typical run time continues about as long again."""
    if run.ends_at is not None:
        return run.ends_at
    return now + max(typical, now - run.started_at if run.started_at else 0.0)


class _Slots:
    """All slots of a platform."""

    def __init__(self, snapshot: Snapshot, running: Iterable[Running], now: float) -> None:
        self.now = now
        up = {node.id for node in snapshot.nodes if node.accepts}
        kinds = {d.id: d.kind for d in snapshot.devices if d.healthy and d.node in up}
        totals: Counter[str] = Counter()
        for device in snapshot.devices:
            if device.id in kinds:
                totals[device.kind] += device.capacity // FULL_CARD
        self.bundle = max(1, -(-totals["cpu"] // MAX_CORES))
        totals["cpu"] //= self.bundle
        self.machines = {kind: _Bank(total, now) for kind, total in totals.items()}
        self.clusters = {c.id: c for c in snapshot.clusters}
        self.quotas: dict[tuple[int, str], _Bank] = {}
        left = unowned(snapshot.nodes, snapshot.devices, snapshot.clusters)
        self.unowned = {kind: _Bank(self._slots(kind, shares // FULL_CARD), now) for kind, shares in left.items()}
        self.limits: dict[tuple[int, int, str, str, bool], _Limits] = {}
        self.people: dict[tuple[int, int, str], _Bank | None] = {}
        self.wants: dict[tuple[int, int, int, str, bool], list[tuple[_Bank, int, float]]] = {}
        for cluster in snapshot.clusters:
            for kind, quota in cluster.quotas.items():
                if quota.guaranteed is not None and not quota.borrows:
                    self.quotas[cluster.id, kind] = _Bank(self._slots(kind, quota.guaranteed), now)
        for run in running:
            self._occupy(run, kinds)

    def _occupy(self, run: Running, kinds: dict[int, str]) -> None:
        end = math.inf if run.ends_at is None else max(self.now, run.ends_at)
        shares: Counter[str] = Counter()
        for device, taken in run.held:
            if device in kinds:
                shares[kinds[device]] += taken
        shares["cpu"] //= self.bundle
        for kind, taken in shares.items():
            if kind in self.machines:
                _occupy(self.machines[kind].heap, taken, end, self.now)
        kind, taken = run.counted
        limits = self._limits(run.cluster, run.owner, kind, run.counts_as, gives_way=run.preemptible)
        for bank in limits.cards:
            _occupy(bank.heap, taken // (self.bundle if kind == "cpu" else 1), end, self.now)
        for bank in limits.jobs:
            heapreplace(bank.heap, end)

    def _limits(self, cluster: int, owner: int, kind: str, counts_as: str, *, gives_way: bool) -> _Limits:
        key = (cluster, owner, kind, counts_as, gives_way)
        limits = self.limits.get(key)
        if limits is None:
            cluster_limits = self.clusters.get(cluster)
            cards = [self.quotas[cluster, kind]] if (cluster, kind) in self.quotas else []
            jobs = []
            if cluster_limits is not None:
                if not gives_way and cluster_limits.quota(kind).guaranteed is None and kind in self.unowned:
                    cards.append(self.unowned[kind])
                limit = cluster_limits.quota(kind).per_user
                cards += self._user_banks((cluster, owner, kind), None if limit is None else self._slots(kind, limit))
                limit = cluster_limits.per_user.get(counts_as)
                jobs += self._user_banks((cluster, owner, counts_as), limit or None)
            limits = self.limits[key] = _Limits(cards, jobs)
        return limits

    def _slots(self, kind: str, limit: int) -> int:
        """Convert a number of cards or cores into slots."""
        return -(-limit // self.bundle) if kind == "cpu" else limit

    def _user_banks(self, key: tuple[int, int, str], limit: int | None) -> list[_Bank]:
        """The slots of one limit of a user; none without a limit."""
        if key not in self.people:
            self.people[key] = None if limit is None else _Bank(limit, self.now)
        bank = self.people[key]
        return [] if bank is None else [bank]

    def _wants(self, job: Waiting) -> list[tuple[_Bank, int, float]]:
        """(slots, how many, for which part of its run time) that `job` takes; computed once for equal requests."""
        key = (job.cluster, job.owner, id(job.request), job.counts_as, job.preemptible)
        wants = self.wants.get(key)
        if wants is None:
            wants = self.wants[key] = self._new_wants(job)
        return wants

    def _new_wants(self, job: Waiting) -> list[tuple[_Bank, int, float]]:
        request = job.request
        kind = request.kind
        limits = self._limits(job.cluster, job.owner, kind, job.counts_as, gives_way=job.preemptible)
        machines = self.machines.get(kind) or self.machines.setdefault(kind, _Bank(0, self.now))
        if request.gpus:
            count, part = request.nodes * request.gpus, request.shares / FULL_CARD
        else:
            count = request.nodes * max(1, request.cpu_shares // FULL_CARD // self.bundle)
            part = min(1.0, request.cpu_shares / FULL_CARD / self.bundle)
        wants = [(bank, count, part) for bank in (machines, *limits.cards)]
        return wants + [(bank, 1, 1.0) for bank in limits.jobs]

    def reserve(self, job: Waiting) -> float | None:
        """Reserve the earliest slots for `job` and return when it would start."""
        wants = self._wants(job)
        start, runtime = self.now, job.estimated_runtime(math.inf)
        for bank, count, _ in wants:
            if bank.width < count:
                return None
        for bank, count, _ in wants:
            moment = bank.heap[0] if count == 1 else _nth(bank.heap, count)
            start = max(start, moment)
        for bank, count, part in wants:
            until = start + runtime * part
            if count == 1:
                heapreplace(bank.heap, until)
            else:
                for _ in range(count):
                    heappush(bank.heap, until)
        return start

    def flow(self, job: Waiting) -> float | None:
        """Like `reserve`, on the level of the slots instead of each."""
        wants = self._wants(job)
        start, runtime = self.now, job.estimated_runtime(math.inf)
        for bank, count, _ in wants:
            if bank.width < count:
                return None
            level = bank.level
            if level is None:
                level = bank.filled_to()
            if level > start:
                start = level
        for bank, count, part in wants:
            level = bank.level
            bank.level = (bank.filled_to() if level is None else level) + count * runtime * part / bank.width
        return start


def _nth(heap: list[float], count: int) -> float:
    """Remove the `count` earliest moments and return the last of them."""
    moment = 0.0
    for _ in range(count):
        moment = heappop(heap)
    return moment


def _occupy(heap: list[float], shares: int, end: float, now: float) -> None:
    """Occupy the slots that `shares` amount to until `end`; a part of a card counts by its part of the time."""
    cards, part = divmod(shares, FULL_CARD)
    for _ in range(min(cards, len(heap))):
        heapreplace(heap, end)
    if part and heap:
        heapreplace(heap, now + (end - now) * part / FULL_CARD)
