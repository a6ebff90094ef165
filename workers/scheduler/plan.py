"""One pass of the scheduler: who starts where, and why everybody else waits. Pure.

Jobs are offered devices in `order.queue_order`. The first one of each device kind that the machines cannot
take gets a reservation: the moment enough devices will be free, by the time limits of what runs. Later
jobs may fill the holes (EASY backfill) if they end before that moment or leave the reserved devices alone.
A cluster's quota is reserved for its first job in the same way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from workers.scheduler import estimate
from workers.scheduler.fit import Place, Space
from workers.scheduler.limits import Ledger
from workers.scheduler.order import queue_order
from workers.scheduler.snapshot import FULL_CARD, Request, Running, Snapshot, Waiting

_Reason = tuple[str, Mapping[str, int | str]]

OVERDUE_S = 60.0
"""Work past its estimated end is assumed to go on for this long."""


class Wait(NamedTuple):
    """Why a job waits: `code` names a sentence of `reasons.SENTENCES`, `args` fill it.

    `position` counts from 1 over the whole queue. `eta` is an estimated start in unix seconds.
    """

    code: str
    args: Mapping[str, int | str]
    position: int
    eta: float | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """A job that may start: one place for each of its nodes, the first is rank 0."""

    job: int
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Preemption:
    """A running job that is asked to make room for a waiting one.

    `evict` moves its processes' memory to the host instead of ending it at a checkpoint.
    """

    job: int
    for_job: int
    why: Literal["urgent", "guarantee", "window"]
    evict: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What one pass decided."""

    assignments: tuple[Assignment, ...] = ()
    waits: dict[int, Wait] = field(default_factory=dict)
    preemptions: tuple[Preemption, ...] = ()


@dataclass(frozen=True, slots=True)
class _Held:
    """A reservation: from `start` on `job` needs its devices."""

    start: float
    job: int


class _Pass:
    """The changing state of one pass over the queue."""

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self.now = now
        self.typical = snapshot.typical_runtime
        self.ledger = Ledger(snapshot, now)
        self.space = Space(snapshot.nodes, snapshot.devices)
        self.running = list(snapshot.running)
        for run in self.running:
            self.space.take(run.held)
        self.whole = [device.capacity for device in self.space.devices]
        self.reserved: set[tuple[str, str]] = set()
        self.held: dict[str, _Held] = {}  # the earliest reservation by kind of device
        self.failed: set[tuple[Request, bool]] = set()  # free only shrinks: what failed once fails again
        self.fitted: dict[Request, int] = {}
        self.started: list[Assignment] = []
        self.waits: list[tuple[Waiting, _Reason | None]] = []  # None: the machines are full
        self.starts: dict[int, float] = {}
        self._possible: dict[Request, bool] = {}

    def offer(self, job: Waiting) -> None:
        """Start `job` if limits and machines allow it, else note why it waits."""
        refused = self.ledger.refuse(job)
        if refused:
            self.waits.append((job, refused))
            return
        request = job.request
        held = self.held.get(request.kind)
        outlives = held is None or job.runtime is None or self.now + job.runtime > held.start
        key = (request, outlives)
        if key not in self.failed:
            places = self.space.find(request, self.space.long_free() if outlives else self.space.free)
            if places is not None:
                self._start(job, places, outlives)
                return
            self.failed.add(key)
        self._wait(job, held)

    def _start(self, job: Waiting, places: tuple[Place, ...], outlives: bool) -> None:
        taken = tuple(pair for _, devices in places for pair in devices)
        self.space.take(taken, outlives=outlives)
        self.ledger.add(job)
        ends_at = None if job.runtime is None else self.now + job.runtime
        self.running.append(
            Running(job.job, job.owner, job.cluster, taken, ends_at, job.request.card_shares, job.preemptible)
        )
        self.started.append(Assignment(job.job, places))

    def _wait(self, job: Waiting, held: _Held | None) -> None:
        request = job.request
        if held is not None and self._fits_free(request):
            self.waits.append((job, ("reserved", {"job": held.job})))
            return
        if (request.kind, request.model) not in self.reserved and self._possible_at_all(request):
            self._reserve(job)
        self.waits.append((job, None))

    def _fits_free(self, request: Request) -> bool:
        """Whether only a reservation keeps `request` from starting."""
        if (request, False) in self.failed:
            return False
        if self.fitted.get(request) != len(self.started):
            if self.space.find(request, self.space.free) is None:
                self.failed.add((request, False))
                return False
            self.fitted[request] = len(self.started)
        return True

    def _possible_at_all(self, request: Request) -> bool:
        if request not in self._possible:
            self._possible[request] = self.space.find(request, self.whole) is not None
        return self._possible[request]

    def why(self, request: Request) -> _Reason:
        """The sentence for a request that the free devices cannot take."""
        asked = request.nodes * (request.gpus or 1)
        if not self._possible_at_all(request):
            return "no_machine", {"asked": asked, "nodes": request.nodes}
        if not request.gpus:
            return "no_cpu", {"asked": -(-request.cpu_shares // FULL_CARD)}
        free = self.space.free_cards(request, self.space.free)
        if free < asked:
            return "no_cards", {"asked": asked, "free": free}
        best = self.space.best_node(request, self.space.free)
        return "scattered", {"asked": request.gpus, "free": free, "best": best}

    def _reserve(self, job: Waiting) -> None:
        """Hold devices for `job` from the first moment at which it fits."""
        ends = sorted(((self._end(run), run.held) for run in self.running if run.held), key=lambda pair: pair[0])
        low, high = 1, len(ends)
        best: tuple[float, list[int], tuple[Place, ...]] | None = None
        while low <= high:  # more releases never hurt, so the first that is enough is found by halving
            middle = (low + high) // 2
            free = list(self.space.free)
            for _, held in ends[:middle]:
                self.space.give(held, free)
            places = self.space.find(job.request, free)
            if places is None:
                low = middle + 1
            else:
                best, high = (ends[middle - 1][0], free, places), middle - 1
        if best is None:
            return
        start, free, places = best
        for _, devices in places:
            for device, shares in devices:
                free[self.space.index[device]] -= shares
        matching = self.space.matching(job.request)
        spare = list(self.space.free) if self.space.spare is None else self.space.spare
        for i in matching:
            spare[i] = free[i] if self.space.spare is None else min(spare[i], free[i])
        self.space.spare = spare
        kind = job.request.kind
        self.reserved.add((kind, job.request.model))
        if kind not in self.held or start < self.held[kind].start:
            self.held[kind] = _Held(start, job.job)
        self.starts[job.job] = start

    def _end(self, run: Running) -> float:
        end = self.now + self.typical if run.ends_at is None else run.ends_at
        return max(end, self.now + OVERDUE_S)


def plan(snapshot: Snapshot, now: float) -> Plan:
    """Decide one pass.

    Args:
        now: unix seconds; the only clock this knows.

    Returns:
        Assignments that fit together into what is free, and for every other waiting job the reason,
        its position and an estimated start. Equal input gives an equal plan.
    """
    this = _Pass(snapshot, now)
    for job in queue_order(snapshot, now):
        this.offer(job)
    etas = estimate.starts(snapshot, this.running, [job for job, _ in this.waits], now)
    full: dict[Request, _Reason] = {}
    waits: dict[int, Wait] = {}
    for position, (job, reason) in enumerate(this.waits, start=1):
        if reason is None:
            reason = full.get(job.request) or full.setdefault(job.request, this.why(job.request))
        eta = None if reason[0] == "no_machine" else this.starts.get(job.job, etas.get(job.job))
        waits[job.job] = Wait(*reason, position, eta)
    return Plan(tuple(this.started), waits)
