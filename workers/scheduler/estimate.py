"""When waiting jobs will probably start. Pure.

List scheduling on counted slots: the cards (or cores) of the machines, of the cluster's quota and of the
person's limit. Topology is left out on purpose: this is an estimate for people, not a promise.
"""

from collections.abc import Iterable
from heapq import heappop, heappush, heapreplace
from typing import NamedTuple

from workers.scheduler.snapshot import FULL_CARD, Running, Snapshot, Waiting

MOST_CORES = 512
"""More cores than this are counted in bundles, which keeps a pass short."""


def starts(snapshot: Snapshot, running: Iterable[Running], waiting: Iterable[Waiting], now: float) -> dict[int, float]:
    """Estimated start in unix seconds by job. A job that no number of slots can hold is left out.

    Args:
        running: what holds devices after this pass.
        waiting: what still waits, in the order of the queue.
    """
    slots = _Slots(snapshot, running, now)
    found: dict[int, float] = {}
    for job in waiting:
        start = slots.put(job)
        if start is not None:
            found[job.job] = start
    return found


class _Limits(NamedTuple):
    """Heaps of card slots and of job slots."""

    cards: list[list[float]]
    jobs: list[list[float]]


class _Slots:
    """Heaps of the moments at which slots become free."""

    def __init__(self, snapshot: Snapshot, running: Iterable[Running], now: float) -> None:
        self.now, self.typical = now, snapshot.typical_runtime
        up = {node.id for node in snapshot.nodes if node.accepts}
        kinds = {d.id: d.kind for d in snapshot.devices if d.healthy and d.node in up}
        totals = {"gpu": 0, "cpu": 0}
        for device in snapshot.devices:
            if device.id in kinds:
                totals[device.kind] = totals.get(device.kind, 0) + device.capacity // FULL_CARD
        self.bundle = max(1, -(-totals["cpu"] // MOST_CORES))
        totals["cpu"] //= self.bundle
        self.machines = {kind: [now] * total for kind, total in totals.items()}
        self.clusters = {c.id: c for c in snapshot.clusters}
        self.quota = {c.id: [now] * most for c in snapshot.clusters if (most := c.quota("gpu").guaranteed) is not None}
        self.limits: dict[tuple[int, int], _Limits] = {}
        for run in running:
            self._occupy(run, kinds)

    def _occupy(self, run: Running, kinds: dict[int, str]) -> None:
        end = max(self.now, self.now + self.typical if run.ends_at is None else run.ends_at)
        shares = {"gpu": 0, "cpu": 0}
        for device, taken in run.held:
            if device in kinds:
                shares[kinds[device]] = shares.get(kinds[device], 0) + taken
        shares["cpu"] //= self.bundle
        for kind, taken in shares.items():
            _fill(self.machines.get(kind, []), taken, end, self.now)
        limits = self._limits((run.cluster, run.owner))
        for heap in limits.cards:
            _fill(heap, run.card_shares, end, self.now)
        for heap in limits.jobs:
            heapreplace(heap, end)

    def _limits(self, who: tuple[int, int]) -> _Limits:
        """The slots that a person's work in a cluster takes besides the machines'."""
        if who not in self.limits:
            cluster = self.clusters.get(who[0])
            cards = [self.quota[who[0]]] if who[0] in self.quota else []
            jobs = []
            most = cluster.quota("gpu").per_user if cluster else None
            if most is not None:
                cards.append([self.now] * most)
            if cluster and cluster.user_jobs:
                jobs.append([self.now] * cluster.user_jobs)
            self.limits[who] = _Limits(cards, jobs)
        return self.limits[who]

    def put(self, job: Waiting) -> float | None:
        """Take the earliest slots for `job` and return when it would start."""
        request = job.request
        runtime = self.typical if job.runtime is None else job.runtime
        who = (job.cluster, job.owner)
        limits = self.limits.get(who) or self._limits(who)
        if request.gpus:
            count = request.nodes * request.gpus
            busy = runtime * request.shares / FULL_CARD
            heaps = [(heap, count, busy) for heap in (self.machines["gpu"], *limits.cards)]
        else:
            count = request.nodes * max(1, request.cpu_shares // FULL_CARD // self.bundle)
            busy = runtime * min(1.0, request.cpu_shares / FULL_CARD / self.bundle)
            heaps = [(self.machines["cpu"], count, busy)]
        heaps.extend((heap, 1, runtime) for heap in limits.jobs)
        start = self.now
        for heap, count, _ in heaps:
            if len(heap) < count:
                return None
        for heap, count, _ in heaps:
            moment = heap[0] if count == 1 else _nth(heap, count)
            start = max(start, moment)
        for heap, count, busy in heaps:
            if count == 1:
                heapreplace(heap, start + busy)
            else:
                for _ in range(count):
                    heappush(heap, start + busy)
        return start


def _nth(heap: list[float], count: int) -> float:
    """Remove the `count` earliest moments and return the last of them."""
    moment = 0.0
    for _ in range(count):
        moment = heappop(heap)
    return moment


def _fill(heap: list[float], shares: int, end: float, now: float) -> None:
    """Occupy the slots that `shares` amount to until `end`; a part of a card counts by its part of the time."""
    whole, part = divmod(shares, FULL_CARD)
    for _ in range(min(whole, len(heap))):
        heapreplace(heap, end)
    if part and heap:
        heapreplace(heap, now + (end - now) * part / FULL_CARD)
