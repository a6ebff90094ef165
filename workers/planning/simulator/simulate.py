"""A cluster under a virtual clock: the planner decides, this plays what would have happened. Pure.

Nothing here decides anything. The planner sees what it sees on a live platform: limits, not true run times;
card-hours that decay with the same half-life; jobs that are being preempted until their cards are free.
Time jumps from one event to the next, and a pass is made whenever one could change the plan: an arrival, an
end, cards freed by a preemption, the guard or the minimum run time of a job passing, the edge of a window.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from workers.core.count_classes import JOB
from workers.planning.planner.order import HALF_LIFE_S
from workers.planning.planner.plan import PREEMPTING, Assignment, Plan, Preemption, plan
from workers.planning.planner.policy import DEFAULT
from workers.planning.planner.snapshot import (
    FULL_CARD,
    URGENT,
    Cluster,
    Device,
    Node,
    Quota,
    Request,
    Running,
    Snapshot,
    Waiting,
)
from workers.planning.simulator.workloads import Setup, Workload

Decider = Callable[[Snapshot, float], Plan]

MONDAY = 1_704_067_200.0
"""Second 0 of every workload: 2024-01-01 00:00 UTC, a Monday."""
CARDS_PER_GROUP = 4
MAX_QUIET_S = 8 * 86_400.0
"""Windows come again every week: where nothing moved for longer, nothing will."""
NEXT_PASS_S = 1.0
"""A pass that made room for as many jobs as it may is followed by another one."""
_SCALE = HALF_LIFE_S / 0.6931471805599453 / 3600.0


class WrongPlan(RuntimeError):
    """The planner gave out a card twice, started a job that does not wait, or preempted one that does not run."""


@dataclass(frozen=True, slots=True)
class Span:
    """One attempt of a job: cards from `began` to `ended`, work from `worked_from` to `worked_to`.

    Times are seconds of the workload. What lies between `worked_to` and `ended` was lost to a preemption.
    """

    job: int
    began: float
    worked_from: float
    worked_to: float
    ended: float
    held: tuple[tuple[int, int], ...]
    preempted: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened. `never_started` are jobs for which the planner found no place to the end."""

    workload: Workload
    spans: tuple[Span, ...]
    preemptions: tuple[tuple[float, int], ...]
    """Moment and job."""
    never_started: tuple[int, ...]
    passes: int


@dataclass(slots=True)
class _Attempt:
    """A running job as the simulator knows it."""

    number: int
    began: float
    worked_from: float
    held: tuple[tuple[int, int], ...]
    shown: Running


@dataclass(slots=True)
class _Use:
    """Decayed card-hours of a person or cluster up to `at`, and the cards held since."""

    hours: float = 0.0
    cards: float = 0.0
    at: float = 0.0

    def read(self, now: float) -> float:
        """The same integral as `order.decayed_hours`, carried forward."""
        faded = 2.0 ** (-(now - self.at) / HALF_LIFE_S)
        return self.hours * faded + self.cards * _SCALE * (1.0 - faded)

    def add(self, cards: float, now: float) -> None:
        """Hold `cards` more from `now` on."""
        self.hours, self.at = self.read(now), now
        self.cards += cards


_Kind = Literal["arrive", "end", "free", "look", "edge", "pass"]


class _Run:
    """The state of one simulation."""

    def __init__(self, workload: Workload, decide: Decider) -> None:
        self.workload, self.decide = workload, decide
        self.events: list[tuple[float, int, _Kind, int, int]] = []
        self.sequence = self.passes = 0
        self.moved = 0.0
        self.waiting: dict[int, Waiting] = {}
        self.running: dict[int, _Attempt] = {}
        self.left: dict[int, float] = {}
        self.attempts: Counter[int] = Counter()
        self.used: Counter[int] = Counter()
        self.spans: list[Span] = []
        self.preemptions: list[tuple[float, int]] = []
        self.requests: dict[tuple[int, int, int], Request] = {}
        setup, works = workload.setup, workload.works
        self.users = {user: i for i, user in enumerate(dict.fromkeys(w.user for w in works), start=1)}
        self.clusters = {limits.name: i for i, limits in enumerate(setup.clusters, start=1)}
        self.by_user = {i: _Use() for i in self.users.values()}
        self.by_cluster = {i: _Use() for i in self.clusters.values()}
        self.still = machines(setup)
        for job, work in enumerate(works):
            self.left[job] = work.runtime_s
            self.at(work.arrival_s, "arrive", job)
        for edge in _edges(self.still):
            self.at(edge, "edge", -1)

    def at(self, moment: float, kind: _Kind, job: int, attempt: int = 0) -> None:
        self.sequence += 1
        heapq.heappush(self.events, (moment, self.sequence, kind, job, attempt))

    def play(self) -> Outcome:
        """Run until nothing is left to happen."""
        while self.events:
            now, changed = self.events[0][0], False
            while self.events and self.events[0][0] <= now:
                _, _, kind, job, attempt = heapq.heappop(self.events)
                changed = self.happen(kind, job, attempt, now) or changed
            if changed and self.waiting:
                self.run_pass(now)
        spans = tuple(self.spans)
        return Outcome(self.workload, spans, tuple(self.preemptions), tuple(self.waiting), self.passes)

    def happen(self, kind: _Kind, job: int, attempt: int, now: float) -> bool:
        """Apply one event and say whether a pass is due."""
        if kind not in ("look", "edge", "pass"):
            self.moved = now
        if kind == "pass":
            return True
        if kind == "arrive":
            self.queue(job)
            for wait_s in (DEFAULT.guard_s, DEFAULT.turn_s):
                self.at(now + wait_s, "look", job)
            return True
        if kind == "look":
            return job in self.waiting or self._wanted(job, attempt, now)
        if kind == "edge":
            if now - self.moved <= MAX_QUIET_S:  # later nothing would change any more
                self.at(now + 86_400.0, "edge", -1)
            return True
        holder = self.running.get(job)
        if holder is None or holder.number != attempt:
            return False
        if kind == "end":
            self.close(job, now, preempted=False)
            return True
        self.close(job, now, preempted=True)
        self.queue(job)
        return True

    def queue(self, job: int) -> None:
        """Wait at the place of the arrival, as a preempted job does."""
        work = self.workload.works[job]
        requested = (work.nodes, work.devices, work.shares)
        self.waiting[job] = Waiting(
            job, self.users[work.user], self.clusters[work.cluster],
            self.requests.setdefault(requested, Request(*requested)), MONDAY + work.arrival_s,
            work.priority, work.max_runtime_s, work.preemptible, work.kind, counts_as=work.counts_as,
        )  # fmt: skip

    def run_pass(self, now: float) -> None:
        """One pass of the planner, applied."""
        self.passes += 1
        clock = MONDAY + now
        snapshot = replace(
            self.still,
            running=tuple(attempt.shown for attempt in self.running.values()),
            waiting=tuple(self.waiting.values()),
            usage={user: use.read(now) for user, use in self.by_user.items()},
            cluster_usage={cluster: use.read(now) for cluster, use in self.by_cluster.items()},
        )
        decided = self.decide(snapshot, clock)
        for preemption in decided.preemptions:
            self.preempt(preemption, now)
        for assignment in decided.assignments:
            self.start(assignment, now)
        for job, waits in decided.waits.items():
            promised = waits.code == PREEMPTING
            if self.waiting[job].promised != promised:
                self.waiting[job] = replace(self.waiting[job], promised=promised)
        if len({preemption.for_job for preemption in decided.preemptions}) >= DEFAULT.most_beneficiaries:
            self.at(now + NEXT_PASS_S, "pass", -1)  # it goes on where it had to stop

    def start(self, assignment: Assignment, now: float) -> None:
        job = assignment.job
        wanted = self.waiting.pop(job, None)
        if wanted is None:
            raise WrongPlan(f"Job {job} was started but does not wait.")
        setup, work = self.workload.setup, self.workload.works[job]
        held = tuple(pair for _, devices in assignment.places for pair in devices)
        for device, shares in held:
            self.used[device] += shares
            if self.used[device] > FULL_CARD:
                raise WrongPlan(f"Card {device} was given out twice, the second time to job {job}.")
        self.attempts[job] += 1
        number = self.attempts[job]
        ready = now + (setup.start_overhead_s if number == 1 else setup.restart_overhead_s)
        limit = work.max_runtime_s
        shown = Running(
            job, wanted.owner, wanted.cluster, held, None if limit is None else MONDAY + now + limit,
            wanted.request.card_shares, work.preemptible, work.kind, priority=work.priority,
            started_at=MONDAY + now, queued_at=wanted.queued_at, runtime=limit, times_preempted=number - 1,
            counts_as=work.counts_as,
        )  # fmt: skip
        self.running[job] = _Attempt(number, now, ready, held, shown)
        self.by_user[wanted.owner].add(work.cards, now)
        self.by_cluster[wanted.cluster].add(work.cards, now)
        self.at(ready + self.left[job], "end", job, number)
        self.at(now + DEFAULT.protected_s(number - 1), "look", job, number)

    def preempt(self, preemption: Preemption, now: float) -> None:
        """Ask a job to make room: its cards are free after the grace, or when it ends by itself before."""
        attempt = self.running.get(preemption.job)
        if attempt is None or attempt.shown.preempting:
            raise WrongPlan(f"Job {preemption.job} was preempted but does not run, or is being preempted already.")
        free = now + self.workload.setup.grace_s
        attempt.shown = replace(
            attempt.shown, preempting=True, for_job=preemption.for_job, ends_at=MONDAY + free
        )  # fmt: skip
        self.preemptions.append((now, preemption.job))
        self.at(free, "free", preemption.job, attempt.number)

    def close(self, job: int, now: float, *, preempted: bool) -> None:
        """Free the cards of a running job and keep account of its work."""
        attempt, work = self.running.pop(job), self.workload.works[job]
        for device, shares in attempt.held:
            self.used[device] -= shares
        self.by_user[attempt.shown.owner].add(-work.cards, now)
        self.by_cluster[attempt.shown.cluster].add(-work.cards, now)
        saved_until = now
        if preempted:
            saved_until = max(attempt.worked_from, now - self.workload.setup.lost_s)
        worked_from = min(attempt.worked_from, now)
        saved_until = max(worked_from, min(saved_until, now))
        self.left[job] -= saved_until - worked_from
        self.spans.append(Span(job, attempt.began, worked_from, saved_until, now, attempt.held, preempted))

    def _wanted(self, job: int, attempt: int, now: float) -> bool:
        """Whether the end of the minimum run time of `job` could let a waiting job start."""
        holder = self.running.get(job)
        if holder is None or holder.number != attempt or holder.shown.preempting:
            return False
        due = MONDAY + now - DEFAULT.turn_s
        return len(self.clusters) > 1 or any(w.priority >= URGENT or w.queued_at <= due for w in self.waiting.values())


def simulate(workload: Workload, decide: Decider = plan) -> Outcome:
    """Play a workload to the end of its last job.

    Args:
        decide: the planner, or another function of the same shape to compare it with.

    Raises:
        WrongPlan: for decisions that no platform could carry out.
    """
    return _Run(workload, decide).play()


def machines(setup: Setup) -> Snapshot:
    """The nodes, cards and clusters of a setup, without any work."""
    nodes = tuple(Node(n, f"node{n + 1}") for n in range(setup.nodes))
    devices = tuple(
        Device(n * setup.cards + i, n, group=i // CARDS_PER_GROUP)
        for n in range(setup.nodes)
        for i in range(setup.cards)
    )
    clusters = tuple(
        Cluster(i, c.name, {"gpu": Quota(c.guaranteed, c.borrows, c.per_user)}, _per_user(c.user_jobs))
        for i, c in enumerate(setup.clusters, start=1)
    )
    return Snapshot(nodes, devices, clusters, groups=setup.groups)


def _per_user(jobs: int | None) -> dict[str, int]:
    return {} if jobs is None else {JOB.name: jobs}


def _edges(still: Snapshot) -> list[float]:
    """Seconds after midnight at which a window of a resource group opens or closes."""
    return sorted(
        {60.0 * edge for group in still.groups for window in group.windows for edge in (window.begins, window.ends)}
    )
