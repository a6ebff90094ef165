"""One pass of the scheduler: who starts where, who makes room, and why everybody else waits. Pure.

Jobs are offered devices in `order.queue_order`; those that would borrow beyond their cluster's guarantee come
last, so that nothing they wait for is kept from whoever is guaranteed it. The first one of each device kind that
the machines cannot take gets a reservation: the moment enough devices will be free, by the time limits of what
runs. Later jobs may fill the holes (EASY backfill) if they end before that moment or leave the reserved devices
alone. A cluster's quota is reserved for its first job in the same way. Where a job may have running work make
room for it (`preempt`), it is given those cards at once on paper: whoever comes later counts them as taken.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from workers.planning.planner import estimate
from workers.planning.planner.evicted import Evicted, reserve_return
from workers.planning.planner.fit import Place, Shape, Space
from workers.planning.planner.full import Reason, full_reason
from workers.planning.planner.limits import Ledger, Verdict, borrowed
from workers.planning.planner.order import how_many_first, queue_order
from workers.planning.planner.policy import DEFAULT, Policy
from workers.planning.planner.preempt import Victims, Why, choose_for
from workers.planning.planner.snapshot import URGENT, Running, Snapshot, Waiting
from workers.planning.planner.uncollected import uncollected
from workers.planning.planner.windows import Openings

_Kept = tuple[str, str, int, frozenset[int]]
"""What one reservation is for: kind and model of device, the machine or 0, and machines kept for other work."""

PREEMPTING = "making_room"
"""Code of a job that running work makes room for; one that was told so is promised the cards."""
_CLUSTER_FULL = ("cluster_quota", "cluster_cores")
_NOTHING_IDLE = {"no_cards": "nothing_idle", "no_share": "nothing_idle", "no_cpu": "no_idle_cores"}
OVERDUE_S = 60.0
"""Work past its estimated end is assumed to go on for this long."""


class Wait(NamedTuple):
    """Why a job waits: `code` names a text of `wait_reasons.WAIT`, `args` fill it.

    `position` counts from 1 over the whole queue. `eta` is an estimated start in unix seconds.
    """

    code: str
    args: Mapping[str, int | float | str]
    position: int
    eta: float | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """A job that may start: one place for each of its nodes, the first is rank 0."""

    job: int
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Preemption:
    """A running job that is requested to make room for a waiting one.

    `evict` moves its processes' memory to the host instead of ending it at a checkpoint.
    """

    job: int
    for_job: int
    why: Why
    evict: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What one pass decided. `returns` are evicted jobs that go back to their cards."""

    assignments: tuple[Assignment, ...] = ()
    waits: dict[int, Wait] = field(default_factory=dict)
    preemptions: tuple[Preemption, ...] = ()
    returns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reservation:
    """A reservation: from `start` on `job` needs its devices."""

    start: float
    job: int
    queued_at: float
    calls: bool
    """Whether preemptible work that came later will give way to it by then."""


class _Pass:
    """The changing state of one pass over the queue."""

    def __init__(self, snapshot: Snapshot, now: float, policy: Policy) -> None:
        self.now, self.policy = now, policy
        self.typical = snapshot.typical_runtime
        self.openings = Openings(snapshot, now)
        self.space = Space(snapshot.nodes, snapshot.devices, self.openings.closed_to)
        gone_at = now + policy.grace_s
        self.running = [replace(run, ends_at=gone_at) if run.preempting else run for run in snapshot.running]
        self.ledger = Ledger(replace(snapshot, running=tuple(self.running)), now, policy)
        self.coming = [0] * len(self.space.devices)  # shares that leaving work gives back and nobody claimed
        for run in self.running:
            self.space.occupy(run.held)
            if run.preempting:
                self.space.release_into(run.held, self.coming)
        lent = borrowed(snapshot.clusters, self.running)
        self.victims = Victims(self.running, lent, self.space, now, policy)
        self.away = Evicted(snapshot, lent, now, policy)
        self.returns: list[int] = []
        self.leaving = {run.job for run in self.running if run.preempting}
        self.asked_for = {run.for_job for run in self.running if run.preempting}
        self.relief: Counter[tuple[int, str]] = Counter()  # shares that leaving work gives back to its quota
        for run in self.running:
            if run.preempting:
                self._relieve(run)
        self.claims: list[Running] = []  # jobs that wait only for leaving work
        self.whole = [device.capacity for device in self.space.devices]
        self.kept = [0] * len(self.whole)  # shares of each device that reservations need
        self.reserved: set[_Kept] = set()
        self.settled: set[Shape] = set()  # shapes that get no reservation, as there is one already or never will be
        self.held: dict[str, _Reservation] = {}  # the earliest reservation by kind of device
        self.failed: dict[bool, set[Shape]] = {True: set(), False: set()}  # free only shrinks: it fails again
        self.hopeless: set[tuple[Shape, bool, bool, bool, str, int]] = set()
        self.fitted: dict[Shape, int] = {}
        self.deferred: list[Waiting] = []
        self.started: list[Assignment] = []
        self.preemptions: list[Preemption] = []
        self.beneficiaries = 0
        self.waits: list[tuple[Waiting, Reason | Shape]] = []  # a shape: the machines are full
        self.starts: dict[int, float | None] = {}  # None: behind work whose end is not known
        self._possible: dict[Shape, bool] = {}

    def offer(self, job: Waiting, *, last: bool = False) -> None:
        """Start `job` if limits and nodes allow it, otherwise preempt for it or note why it waits.

        One that takes fewer nodes than it wants gets as many as are free now, and waits for the fewest.
        """
        original = job
        if job.request.least:
            if any(self._starts(replace(job, request=request), last=last) for request in job.request.larger):
                return
            job = replace(job, request=job.request.smallest)
        shape = self.space.shape(job.request, job.kind)
        verdict = self.ledger.judge(job, shape.counted)
        urgent = job.priority >= URGENT
        if verdict.refused is not None:
            full = urgent and verdict.refused[0] in _CLUSTER_FULL and (self.victims or self.asked_for)
            if not (full and self._make_room(job, shape, verdict, outlives=True)):
                self.waits.append((job, verdict.refused))
            return
        if verdict.borrows and not last:
            self.deferred.append(original)
            return
        held = self.held.get(shape.kind)
        if held is not None and not urgent and not self.policy.backfills:
            self._wait(job, shape, held)
            return
        outlives = held is None or self._outlives(job, held)
        if self._place(job, shape, outlives=outlives):
            return
        if (self.victims or self.asked_for) and self._make_room(
            job, shape, verdict, outlives=held is not None and outlives
        ):
            return
        self._wait(job, shape, held)

    def _starts(self, job: Waiting, *, last: bool) -> bool:
        """Start `job` where nothing has to change for it; whether it did."""
        verdict = self.ledger.judge(job)
        held = self.held.get(job.request.kind)
        waits = held is not None and job.priority < URGENT and not self.policy.backfills
        if verdict.refused is not None or (verdict.borrows and not last) or waits:
            return False
        return self._place(job, self.space.shape(job.request, job.kind), outlives=self._outlives(job, held))

    def _outlives(self, job: Waiting, held: _Reservation | None) -> bool:
        """Whether `job` would still run when the reserved one needs its devices."""
        if held is not None and held.calls and job.preemptible and job.queued_at > held.queued_at:
            return False  # it gives way when the turn of the reserved job comes
        return held is None or job.runtime is None or self.now + job.runtime > held.start

    def _place(self, job: Waiting, shape: Shape, *, outlives: bool) -> bool:
        """Start `job` if the machines have room; whether they have."""
        if shape in self.failed[outlives]:
            return False
        places = self.space.find(shape, self.space.long_free if outlives else self.space.free)
        if places is None:
            self.failed[outlives].add(shape)
            return False
        self._start(job, places, outlives)
        return True

    def _start(self, job: Waiting, places: tuple[Place, ...], outlives: bool) -> None:
        taken = tuple(pair for _, devices in places for pair in devices)
        self.space.occupy(taken, outlives=outlives)
        self.ledger.add(job)
        self.running.append(self._as_running(job, taken, self.now))
        self.started.append(Assignment(job.job, places))

    def _as_running(self, job: Waiting, taken: tuple[tuple[int, int], ...], at: float) -> Running:
        return Running(
            job.job, job.owner, job.cluster, taken, None if job.runtime is None else at + job.runtime,
            job.request.card_shares, job.preemptible, job.kind, job.request.device_kind, job.priority, at,
            counts_as=job.counts_as,
        )  # fmt: skip

    def _make_room(self, job: Waiting, shape: Shape, verdict: Verdict, *, outlives: bool) -> bool:
        """Give `job` cards that leave or can be made to leave; False if it may not or nothing is enough."""
        urgent = job.priority >= URGENT
        promised = job.promised or job.job in self.asked_for
        turn = self._is_due(job) and shape.kind not in self.held
        entitled = urgent or verdict.owns or promised or turn or self.openings.kept_for(job.kind)
        if not (entitled or self.victims.any_idle):
            return False
        class_ = (shape, urgent, verdict.owns, outlives, job.kind, job.job if turn else -job.cluster)
        if class_ in self.hopeless and not promised:
            return False
        room = [free + coming for free, coming in zip(self.space.free, self.coming, strict=True)]
        if outlives:
            room = [shares - reserved for shares, reserved in zip(room, self.kept, strict=True)]
        gap = self.ledger.quota_gap(job) - self.relief[job.cluster, job.request.kind] if verdict.refused else 0
        places = self.space.find(shape, room) if gap <= 0 else None
        if places is None:
            places = self._preempt(job, shape, verdict, room, gap, turn=turn)
        if places is None:
            self.hopeless.add(class_)
            return False
        self._claim(job, places)
        return True

    def _preempt(
        self, job: Waiting, shape: Shape, verdict: Verdict, room: list[int], gap: int, *, turn: bool
    ) -> tuple[Place, ...] | None:
        """Choose victims for `job` and return its places after their end, or None."""
        if self.beneficiaries >= self.policy.most_beneficiaries or not self.possible(shape):
            return None
        victims = self.victims.for_job(job, verdict, self.openings, self.space, turn=turn)
        chosen = choose_for(shape, room, victims, self.victims, self.space, self.now, gap=gap)
        if chosen is None:
            return None
        self.beneficiaries += 1
        self.victims.evicted(chosen)
        for victim in chosen:
            self.preemptions.append(Preemption(victim.run.job, job.job, victim.why, victim.evict))
            self.leaving.add(victim.run.job)
            if not victim.evict:  # what is evicted keeps its place, and limits count it
                self._relieve(victim.run)
            for i, shares in victim.gives:
                self.coming[i] += shares
                room[i] += shares
        self.victims.drop(victim.run.job for victim in chosen)
        return self.space.find(shape, room)

    def bring_back(self, waits: list[Running]) -> None:
        """Return evicted jobs to their cards where these are free, and reserve the cards for the others."""
        for run in waits:
            if self.away.fits(run, self.space):
                self.running[self.running.index(run)] = self.away.back(run, self.space)
                self.returns.append(run.job)
                continue
            ends = [(self._end(holder), holder.held) for holder in (*self.running, *self.claims) if holder.held]
            start = reserve_return(run, ends, self.space)
            held = self.held.get(run.device_kind)
            if start is not None and (held is None or start < held.start):
                self.held[run.device_kind] = _Reservation(start, run.job, run.evicted_since, calls=False)

    def _relieve(self, run: Running) -> None:
        kind, shares = run.counted
        self.relief[run.cluster, kind] += shares

    def _is_due(self, job: Waiting, at: float | None = None) -> bool:
        """Whether `job` will have waited so long by `at` (default now) that what was let ahead of it gives way."""
        return self.policy.preempts and (at or self.now) - job.queued_at >= self.policy.turn_s

    def _claim(self, job: Waiting, places: tuple[Place, ...]) -> None:
        """Reserve `places` for `job`: first what ending work releases, the rest from what is free."""
        taken = tuple(pair for _, devices in places for pair in devices)
        for device, shares in taken:
            i = self.space.index[device]
            coming = min(self.coming[i], shares)
            self.coming[i] -= coming
            self.space.occupy([(device, shares - coming)])
        self.ledger.add(job)
        gone_at = self.now + self.policy.grace_s
        self.claims.append(self._as_running(job, taken, gone_at))
        self.starts[job.job] = gone_at
        requested = sum(preemption.for_job == job.job for preemption in self.preemptions)
        requested += sum(run.preempting and run.for_job == job.job for run in self.running)
        self.waits.append((job, (PREEMPTING, {"jobs": max(1, requested)})))

    def _wait(self, job: Waiting, shape: Shape, held: _Reservation | None) -> None:
        if held is not None and self._fits_free(shape):
            self.waits.append((job, ("reserved", {"job": held.job})))
            return
        if shape not in self.settled:
            request = job.request
            key = (request.kind, request.model, request.node, self.openings.closed_to(job.kind))
            if key not in self.reserved and self.possible(shape):
                self._reserve(job, shape, key)
            else:
                self.settled.add(shape)
        self.waits.append((job, shape))

    def _fits_free(self, shape: Shape) -> bool:
        """Whether only a reservation keeps `shape` from starting."""
        if shape in self.failed[False]:
            return False
        if self.fitted.get(shape) != len(self.started):
            if self.space.find(shape, self.space.free) is None:
                self.failed[False].add(shape)
                return False
            self.fitted[shape] = len(self.started)
        return True

    def possible(self, shape: Shape) -> bool:
        if shape not in self._possible:
            self._possible[shape] = self.space.find(shape, self.whole) is not None
        return self._possible[shape]

    def _reserve(self, job: Waiting, shape: Shape, key: _Kept) -> None:
        """Hold devices for `job` from the first moment at which it fits."""
        staying = [run for run in (*self.running, *self.claims) if run.held and run.job not in self.leaving]
        ends = [(self._end(run), run.held, run.ends_at is not None) for run in staying]
        if self.leaving:
            left = tuple((d.id, shares) for d, shares in zip(self.space.devices, self.coming, strict=True) if shares)
            ends.append((self.now + self.policy.grace_s, left, True))
        ends.sort(key=lambda pair: pair[0])
        low, high = 1, len(ends)
        best: tuple[int, list[int], tuple[Place, ...]] | None = None
        while low <= high:  # more releases never hurt, so the first that is enough is found by halving
            middle = (low + high) // 2
            free = list(self.space.free)
            for _, held, _ in ends[:middle]:
                self.space.release_into(held, free)
            places = self.space.find(shape, free)
            if places is None:
                low = middle + 1
            else:
                best, high = (middle, free, places), middle - 1
        if best is None:
            return
        count, free, places = best
        start, endless = ends[count - 1][0], {d for _, held, has_end in ends[:count] if not has_end for d, _ in held}
        for device, shares in (pair for _, devices in places for pair in devices):
            free[self.space.index[device]] -= shares
            self.kept[self.space.index[device]] += shares
        self.space.bound(free, shape)
        kind = job.request.kind
        self.reserved.add(key)
        if kind not in self.held or start < self.held[kind].start:
            self.held[kind] = _Reservation(start, job.job, job.queued_at, self._is_due(job, start))
        self.starts[job.job] = None if any(d in endless for _, devices in places for d, _ in devices) else start

    def _end(self, run: Running) -> float:
        return max(estimate.end_of(run, self.now, self.typical), self.now + OVERDUE_S)


@uncollected
def plan(snapshot: Snapshot, now: float, policy: Policy = DEFAULT) -> Plan:
    """Decide one pass.

    Args:
        now: unix seconds; the only clock this knows.

    Returns:
        Assignments that fit together into what is free, running jobs that make room, and for every other
        waiting job the reason, its position and an estimated start. Equal input gives an equal plan.
    """
    current = _Pass(snapshot, now, policy)
    order, begin = queue_order(snapshot, now, policy), 0
    promised = how_many_first(order, lambda job: job.promised or job.job in current.asked_for)
    urgent = promised + how_many_first(order[promised:], lambda job: job.priority >= URGENT)
    for end, away in ((promised, current.away.overdue), (urgent, current.away.own), (len(order), current.away.lent)):
        for job in order[begin:end]:
            current.offer(job)
        begin = end
        current.bring_back(away)
    for job in current.deferred:
        current.offer(job, last=True)
    etas = estimate.starts(snapshot, current.running, [job for job, _ in current.waits], now)
    full: dict[tuple[Shape, str], Reason] = {}
    borrowers = {job.job for job in current.deferred}
    waits: dict[int, Wait] = {}
    for position, (job, reason) in enumerate(current.waits, start=1):
        if isinstance(reason, Shape):
            key = (reason, job.kind)
            if key not in full:
                full[key] = full_reason(job, reason, current.space, current.openings, current.possible)
            reason = full[key]
            if reason[0] in _NOTHING_IDLE and job.job in borrowers and (facts := current.ledger.quota_facts(job)):
                reason = (_NOTHING_IDLE[reason[0]], facts)
        code, args = reason
        if job.request.node:  # the estimate takes all machines for one
            etas.pop(job.job, None)
        eta = None if code == "no_machine" else current.starts.get(job.job, etas.get(job.job))
        waits[job.job] = Wait(code, args, position, eta)
    return Plan(tuple(current.started), waits, tuple(current.preemptions), tuple(current.returns))
