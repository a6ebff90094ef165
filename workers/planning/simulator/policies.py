"""The ways to decide that the simulator compares: the planner, and others of the same shape. Pure.

`skip_ahead` is what most queues do. `halves` is the AIStation case as published: half of the nodes for
development, half for training, trainings on the development half only at night and at weekends.
"""

from __future__ import annotations

import math
from collections.abc import Set
from functools import partial

from workers.core.count_classes import ENVIRONMENT
from workers.planning.planner.fit import Space
from workers.planning.planner.plan import Assignment, Plan, plan
from workers.planning.planner.policy import Policy
from workers.planning.planner.snapshot import Snapshot, Waiting
from workers.planning.simulator.simulate import Decider

DAY_S = 86_400.0
OPENS_S, CLOSES_S = 9 * 3600.0, 21 * 3600.0
_MONDAY = 4 * DAY_S
"""Unix time begins on a Thursday; this shifts it to whole weeks."""


def skip_ahead(snapshot: Snapshot, now: float) -> Plan:
    """Priority, then first come: what fits starts, what does not is skipped. Nothing is reserved or preempted."""
    space = _space(snapshot)
    return Plan(tuple(_start_fitting(space, _in_order(snapshot))))


def halves(snapshot: Snapshot, now: float) -> Plan:
    """The first half of the nodes develops from 09 to 21 on weekdays and trains what ends before that.

    Nothing is preempted and no cluster limit counts: the halves are the limit.
    """
    half = {node.id for node in snapshot.nodes[: len(snapshot.nodes) // 2]}
    environments: list[Waiting] = []
    rest: list[Waiting] = []
    for job in _in_order(snapshot):
        (environments if job.counts_as == ENVIRONMENT.name else rest).append(job)
    development = _space(snapshot, {node.id for node in snapshot.nodes} - half)
    started = [*_start_fitting(development, environments), *_start_fitting(_space(snapshot, half), rest)]
    taken = {assignment.job for assignment in started}
    opens = _next_opening(now)
    night = [job for job in rest if job.job not in taken and job.runtime is not None and now + job.runtime <= opens]
    return Plan((*started, *_start_fitting(development, night)))


def _next_opening(now: float) -> float:
    """The next moment at which development wants its half: now, while it is open."""
    since_monday = (now - _MONDAY) % (7 * DAY_S)
    for day in range(8):
        opens, closes = day * DAY_S + OPENS_S, day * DAY_S + CLOSES_S
        if day % 7 < 5 and since_monday < closes:
            return now + max(0.0, opens - since_monday)
    raise AssertionError("a week has a weekday")


def _space(snapshot: Snapshot, closed: Set[int] = frozenset()) -> Space:
    """What is free outside the closed nodes."""
    space = Space([node for node in snapshot.nodes if node.id not in closed], snapshot.devices)
    for run in snapshot.running:
        space.occupy(run.held)
    return space


def _in_order(snapshot: Snapshot) -> list[Waiting]:
    return sorted(snapshot.waiting, key=lambda job: (-job.priority, job.queued_at, job.job))


def _start_fitting(space: Space, queue: list[Waiting]) -> list[Assignment]:
    """Start in order what fits. What failed once fails again, because free cards only become fewer."""
    started, failed = [], set()
    for job in queue:
        shape = space.shape(job.request, job.kind)
        if shape in failed:
            continue
        places = space.find(shape, space.free)
        if places is None:
            failed.add(shape)
            continue
        space.occupy(pair for _, devices in places for pair in devices)
        started.append(Assignment(job.job, places))
    return started


POLICIES: dict[str, Decider] = {
    "ours": plan,
    "no-backfill": partial(plan, policy=Policy(backfills=False)),
    "no-guard": partial(plan, policy=Policy(guard_s=math.inf)),
    "no-preemption": partial(plan, policy=Policy(preempts=False)),
    "no-turn": partial(plan, policy=Policy(turn_s=math.inf)),
    "skip-ahead": skip_ahead,
    "halves": halves,
}
