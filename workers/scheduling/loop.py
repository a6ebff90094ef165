"""Scheduler process: takes the lease, reads the planner input, plans, applies, explains.

Several may run; one acts. All writes of a pass stand in a transaction that also renews the lease by
epoch, so a scheduler that was replaced meanwhile changes nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import InterfaceError, OperationalError, close_old_connections, transaction

from aiplatform import env
from aiplatform.lib import after_commit, sweeps
from aiplatform.lib.claims import new_holder
from aiplatform.lib.errors import DomainError
from workers.core import leases, pass_metrics, scheduler_wakeup
from workers.core.clock import now
from workers.core.models import Job
from workers.core.states import FINAL, Desired, JobState
from workers.execution import evictions
from workers.jobs import actions, following
from workers.planning import planner_input
from workers.planning.planner.plan import Plan, plan
from workers.scheduling import explaining, liveness, overdue, placing, reading

log = logging.getLogger(__name__)

LEASE = leases.SCHEDULER
POLL_S, IDLE_POLL_S = 1.0, min(3.0, env.NODE_SUSPECT_S / 5)
"""Between passes that nothing asked for: while jobs wait for devices, and otherwise. Submissions and ends wake it."""
REST_FACTOR, MAX_REST_S = 2.0, 0.25
"""After a pass it rests for so many times as long as that took, and at most so long, whoever wakes it."""
RENEW_S = 3.0
FULL_PASS_S = 5.0
"""Time alone changes a plan (guard, limits): plan at least this often while jobs wait."""
FIGURES_S = 60.0
"""How often use and typical run times are read again."""
IDLE_LOOK_S = 30.0
"""How often it plans while no job waits, and looks for jobs that do not use their devices."""
SHOWN_AT_ONCE = 200
"""Positions further back are written less often."""
LOOKBACK_S = 15.0


class Replaced(Exception):
    """Another scheduler acts now."""


@dataclass
class SlowInputs:
    """Usage and typical run times, read again every `FIGURES_S`."""

    at: float = float("-inf")
    usage: planner_input.Usage = ({}, {})
    typical_s: float = planner_input.TYPICAL_S


class Scheduler:
    """One scheduler. `tick` does one pass and is what tests call; `run` repeats it."""

    def __init__(self, holder: str | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.holder = holder or new_holder()
        self.clock = clock
        self.epoch: int | None = None
        self.figures = SlowInputs()
        self._renewed = self._planned = self._wrote_far = self._looked_idle = float("-inf")
        self._signature: object = None
        self._waits = False  # whether a job waits for devices, or to come back to them

    def run(self, stopped: Callable[[], bool]) -> None:
        """Repeat passes until `stopped`. While the database is away or busy passes fail, the process stays."""
        try:
            while not stopped():
                started_at = time.monotonic()
                try:
                    self.tick()
                    if self.epoch is not None:
                        sweeps.send_due(self.clock())
                except (OperationalError, InterfaceError) as exc:
                    log.warning("database away, trying again: %s", exc)
                    close_old_connections()
                except Exception:
                    log.exception("a pass failed, the next one follows")
                    self._signature = None
                # every job that ends wakes the scheduler: where many do, one pass serves several
                time.sleep(min(MAX_REST_S, REST_FACTOR * (time.monotonic() - started_at)))
                scheduler_wakeup.wait(POLL_S if self._waits else IDLE_POLL_S, without_broker_s=POLL_S)
        finally:
            if self.epoch is not None:
                leases.release(LEASE, self.holder)

    def tick(self) -> Plan | None:
        """One pass. None where another scheduler acts or nothing could have changed."""
        if not self._leads():
            return None
        moment = now()
        liveness.silent_nodes(moment, leases.watched(LEASE, moment))
        alive = set(Job.objects.exclude(state__in=FINAL).order_by().values_list("state", "desired").distinct())
        self._waits = any(state == JobState.QUEUED or desired == Desired.EVICT for state, desired in alive)
        if alive:
            overdue.over_time(moment)
        if self._waits:
            following.end_in_vain()
        if self.clock() - self._looked_idle >= IDLE_LOOK_S:
            self._looked_idle = self.clock()
            overdue.idle(moment)
            overdue.long_paused(moment)
        unplanned_s = self.clock() - self._planned
        if not self._waits and unplanned_s < IDLE_LOOK_S:
            return None
        signature = planner_input.signature()
        if signature == self._signature and unplanned_s < (FULL_PASS_S if self._waits else IDLE_LOOK_S):
            return None
        self._signature, self._planned = signature, self.clock()
        started_at = time.monotonic()
        self._read_figures(moment)
        snapshot = reading.snapshot(moment, self.figures.usage, self.figures.typical_s)
        decided = plan(snapshot, moment.timestamp(), planner_input.POLICY)
        try:
            self._apply(decided)
        except Replaced:
            log.warning("another scheduler took over, standing by")
            self.epoch = None
            return None
        self._explain(decided)
        pass_metrics.record(time.monotonic() - started_at, len(snapshot.waiting))
        return decided

    def _leads(self) -> bool:
        if self.epoch is None or self.clock() - self._renewed >= RENEW_S:
            before, self.epoch = self.epoch, leases.acquire(LEASE, self.holder)
            if self.epoch is not None:
                self._renewed = self.clock()
                if before is None:
                    log.info("scheduler=%s epoch=%s acts", self.holder, self.epoch)
        return self.epoch is not None

    def _read_figures(self, moment: datetime) -> None:
        if self.clock() - self.figures.at >= FIGURES_S:
            self.figures = SlowInputs(
                self.clock(), planner_input.read_usage(moment), planner_input.read_typical(moment)
            )

    def _apply(self, decided: Plan) -> None:
        """Write assignments and preemptions in one transaction; what came too late waits for the next pass."""
        if not decided.assignments and not decided.preemptions and not decided.returns:
            return
        with after_commit.collected(), transaction.atomic():
            if not leases.holds(LEASE, self.holder, self.epoch or 0):
                raise Replaced
            for job in decided.returns:
                try:
                    evictions.come_back(job)
                except DomainError as exc:
                    log.info("job=%s does not come back yet: %s", job, exc)
                    self._signature = None
            late = placing.place_many([(assignment.job, assignment.places) for assignment in decided.assignments])
            for job, why in late.items():
                log.info("job=%s not placed: %s", job, why)
                self._signature = None
            for preemption in decided.preemptions:
                leave = evictions.evict if preemption.evict else actions.release
                try:
                    leave(preemption.job, for_job=preemption.for_job, why=preemption.why)
                except DomainError as exc:  # it ended, or is ending; the next pass sees what is free
                    log.info("job=%s makes no room for job=%s: %s", preemption.job, preemption.for_job, exc)

    def _explain(self, decided: Plan) -> None:
        """Write why jobs wait; those far back in the queue less often."""
        far = self.clock() - self._wrote_far >= LOOKBACK_S
        if explaining.write(decided.waits, up_to=None if far else SHOWN_AT_ONCE):
            self._wrote_far = self.clock() if far else self._wrote_far
        else:
            self._signature = None  # the rest follows in the next pass
