"""Phases of a run: what it does now, with a counter, how long each phase took and how long the run still takes.

A line is reported every two seconds, whatever keeps the program busy. Loops count with `advance`; the names of phases
are those of the platform (workers/core/states.py, JobPhase).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .budget import counted_down
from .ranks import Ranks
from .run import STARTED, Run

EVERY_S = 2.0
PACKING, MASKS, LEARNING, SCORING, EXPORTING = "packing", "masks", "learning", "scoring", "exporting"
SURE_FROM_S = 1.0  # elapsed time of a counter before a rate is computed from it
MAX_SHARE = 0.99  # a phase that still runs is never complete


class Counter:
    """How many units of a phase are done; several threads may count."""

    def __init__(self, total: int = 0, clock: Callable[[], float] | None = None) -> None:
        self.total, self.done = total, 0
        self.beats = 0  # changes whenever the program gets on, for those who look whether it hangs
        self._clock = clock or time.monotonic
        self.began = self._clock()
        self._lock = threading.Lock()

    def advance(self, count: int) -> None:
        with self._lock:
            self.done, self.beats = self.done + count, self.beats + 1

    def left_s(self, thought_s: float | None) -> float | None:
        """Seconds until all units are done, by the rate so far; before there is one, by `thought_s`."""
        elapsed_s = self._clock() - self.began
        if self.total and self.done and elapsed_s >= SURE_FROM_S:
            rest = max(self.total - self.done, 0.05 * self.total)  # what follows the last unit takes time as well
            return elapsed_s * rest / self.done
        return None if thought_s is None else counted_down(thought_s, elapsed_s)

    def shown(self) -> dict[str, float]:
        """Counter and share for a report; no share before the first unit."""
        if not self.total:
            return {}
        counted: dict[str, float] = {"phase_done": min(self.done, self.total), "phase_total": self.total}
        return counted | ({"progress": round(min(self.done / self.total, MAX_SHARE), 4)} if self.done else {})


_current = Counter()


def expect(total: int) -> None:
    """Say how many units the present phase has, where the loop knows it better than its caller."""
    _current.total = total


def advance(count: int = 1) -> None:
    """Count units of the present phase as done; 0 only says that the program gets on."""
    _current.advance(count)


def beats() -> int:
    """A number that changes whenever the program gets on."""
    return _current.beats


class Phases:
    """Adds the phase, its progress and the times of all phases to what a run reports.

    Args:
        spent: seconds of each phase in earlier attempts.
        tells: False on all ranks but the first, which report nothing.
    """

    def __init__(self, run: Run, *, spent: Mapping[str, float] | None = None, tells: bool = True) -> None:
        self.run, self.tells = run, tells
        self.spent = dict(spent or {})
        self.phase, self._since = PACKING, STARTED  # starting the program prepares, too

    def _now(self) -> float:
        """Seconds on a clock without the time for which the platform stopped the program."""
        return time.monotonic() - self.run.paused_s()

    def enter(self, phase: str) -> None:
        """Begin a phase; the time until now belongs to the one before."""
        now = self._now()
        self.spent[self.phase] = self.spent.get(self.phase, 0.0) + now - self._since
        self.phase, self._since = phase, now

    def leave_out(self, seconds: float) -> None:
        """Take a pause of so many seconds, which has just ended, out of the time of the present phase."""
        self._since += seconds

    def seconds(self, phase: str) -> float:
        """Seconds spent in a phase by now, over all attempts."""
        return self.times().get(phase, 0.0)

    def times(self) -> dict[str, float]:
        """Seconds spent in each phase by now."""
        now = {self.phase: self.spent.get(self.phase, 0.0) + self._now() - self._since}
        return {phase: round(seconds, 3) for phase, seconds in (self.spent | now).items()}

    def report(
        self, step: int, figures: Mapping[str, Any], counted: Mapping[str, float], left: Mapping[str, float] | None
    ) -> None:
        """Report metrics with the progress of the phase.

        Args:
            counted: `phase_done`, `phase_total` and `progress`, those that are known.
            left: seconds that each phase still takes, the present one included; None: not known.
        """
        if not self.tells:
            return
        times: dict[str, dict[str, float]] = {
            phase: {"spent_s": round(spent, 1)} for phase, spent in self.times().items()
        }
        report: dict[str, Any] = {"phase": self.phase, **counted, "phase_times": times}
        for phase, seconds in (left or {}).items():
            times.setdefault(phase, {"spent_s": 0.0})["left_s"] = round(seconds, 1)
        if left is not None:
            report["eta_s"] = round(sum(left.values()), 1)
        self.run.report(step, {**figures, **report})

    @contextmanager
    def during(
        self,
        phase: str,
        *,
        step: int,
        total: int = 0,
        thought_s: float | None = None,
        after: Mapping[str, float] | None = None,
    ) -> Iterator[None]:
        """Run a block as one phase with a counter of its own, and go on reporting while it lasts.

        Args:
            total: units of the phase, see `advance`; 0: it has no counter.
            thought_s: what the block is thought to take until its counter says more.
            after: seconds that phases after it take; None: not known, so no remaining time is reported.
        """
        global _current  # noqa: PLW0603  one process runs one phase at a time
        before, outer = self.phase, _current
        _current = counter = Counter(total, self._now)
        self.enter(phase)
        over = threading.Event()
        teller = threading.Thread(target=self._report_until, args=(over, step, counter, thought_s, after), daemon=True)
        if self.tells:
            self._report_counter(step, counter, thought_s, after)
            teller.start()
        try:
            yield
        finally:
            over.set()
            if teller.ident:
                teller.join()
            self.enter(before)
            _current = outer
            outer.beats += 1

    def _report_until(self, over: threading.Event, step: int, *facts: Any) -> None:
        while not over.wait(EVERY_S):
            self._report_counter(step, *facts)

    def _report_counter(
        self, step: int, counter: Counter, thought_s: float | None, after: Mapping[str, float] | None
    ) -> None:
        own = counter.left_s(thought_s)
        left = None
        if after is not None and own is not None:
            left = {**after, self.phase: own + after.get(self.phase, 0.0)}
        self.report(step, {}, counter.shown(), left)


_preparing: tuple[Phases, Mapping[str, float] | None] | None = None  # while caches are made, and what follows them


@contextmanager
def packing(run: Run, params: Mapping[str, Any], ranks: Ranks) -> Iterator[None]:
    """Report that data is being prepared, before there is a trainer that could; see `preparing` for its counters."""
    global _preparing  # noqa: PLW0603  one process is one run
    budget_s = 60 * float(params["budget_minutes"])
    phases = Phases(run, tells=ranks.leads)
    phases.report(0, {}, {}, None)
    _preparing = phases, ({LEARNING: budget_s} if budget_s else None)
    try:
        yield
    finally:
        _preparing = None


@contextmanager
def preparing(phase: str, total: int) -> Iterator[None]:
    """Count rows of a cache as a phase, with `advance`; outside of `packing` nothing is reported."""
    if _preparing is None:
        yield
        return
    phases, after = _preparing
    with phases.during(phase, step=0, total=total, after=after):
        yield
