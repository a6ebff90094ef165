"""How well the remaining time of a training is estimated: `python -m tests.bench progress`.

Trainings are replayed without computing anything, by a simulated clock: step times are synthetic (log-normal noise, and
load of other work that comes and goes), what estimates is the code of the presets itself. Printed for each case: the
median error of the remaining time after the first tenth, how long less than a second was reported while work went on,
and whether progress fell within a phase or reached 1. `--recorded` judges recordings of real trainings instead, see
tests/bench/recorded_progress.py.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import numpy as np

from tests.bench import recorded_progress
from training.presets import budget, phases, points, timing
from training.presets.run import Run
from training.presets.task import Position

REPORT_S = 2.0
MAX_ERROR, MAX_ZERO_S = 0.2, 5.0
ROWS, BATCH = 2000, 32


@dataclass(frozen=True)
class Case:
    """One training: its limits and the machine it runs on.

    Attributes:
        load: how many times as long work takes at a moment of the run.
        bounded: whether the error must stay below MAX_ERROR; load that changes cannot be foreseen.
        killed_at: share of the learning after which the process dies; it goes on from a checkpoint a minute before.
    """

    name: str
    budget_s: float
    steps: float
    load: Callable[[float], float]
    bounded: bool = True
    killed_at: float | None = None
    step_s: float = 0.4
    score_s: float = 12.0
    export_s: float = 3.0


def quiet(_now_s: float) -> float:
    return 1.0


def loaded(_now_s: float) -> float:
    return 10.0


def changing(now_s: float) -> float:
    """Other work for two of every five minutes."""
    return 10.0 if now_s % 300 > 180 else 1.0


CASES = (
    Case("quiet, 10 min budget", 600, math.inf, quiet),
    Case("quiet, 2000 steps", 0, 2000, quiet),
    Case("10x loaded, 2 min budget", 120, math.inf, loaded),
    Case("10x loaded, 300 steps", 0, 300, loaded),
    Case("load comes and goes, 1500 steps", 0, 1500, changing, bounded=False),
    Case("killed and restored, 10 min budget", 600, math.inf, quiet, killed_at=0.5),
    Case("killed and restored, 2000 steps", 0, 2000, quiet, killed_at=0.5),
)


@dataclass
class Replay:
    """A training on a simulated clock; `reports` holds (moment, reported line)."""

    case: Case
    seed: int = 0
    now_s: float = 0.0
    reports: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    attempts: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.at = Position()

    def run(self) -> list[tuple[float, dict[str, Any]]]:
        """Replay all attempts and return what was reported."""
        clock = SimpleNamespace(monotonic=lambda: self.now_s)
        with patch.object(phases, "time", clock):
            died = self.case.killed_at is not None and self._attempt(self.case.killed_at)
            if died or self.case.killed_at is None:
                self._attempt(None)
        return self.reports

    def _attempt(self, killed_at: float | None) -> bool:
        """Run one attempt to its end or to its death; whether it died."""
        case, at = self.case, self.at
        self.attempts += 1
        with patch.object(phases, "STARTED", self.now_s):
            told = phases.Phases(
                cast(Run, SimpleNamespace(report=self._report, paused_s=lambda: 0.0)), spent=at.phase_s
            )
        self._work(15)  # imports
        if not at.step:
            after = {phases.LEARNING: case.budget_s} if case.budget_s else None
            with self._during(told, phases.PACKING, ROWS, after):
                for _row in range(ROWS):
                    self._work(0.01)
                    phases.advance()
                    self._tell(told)
        trainer = SimpleNamespace(
            at=at, phases=told, budget=budget.Budget(case.budget_s, case.steps), pace=budget.Pace(at.step_s),
            task=SimpleNamespace(rows_scored=ROWS * 0.2), batch_size=BATCH, step_s=0.0, slowdown=case.load(self.now_s),
            params={"eval_share": 0.05}, used_s=lambda: at.used_s + self.now_s,
        )  # fmt: skip
        told.enter(phases.LEARNING)
        saved = (self.now_s, vars(at) | {"phase_s": told.times(), "step_s": trainer.pace.step_s})
        since, steps, last = self.now_s, 0, self.now_s - REPORT_S
        while (share := timing.progress(trainer)) < 1:
            if killed_at is not None and share >= killed_at:
                self.at = Position(**saved[1])
                self._work(20)  # until the platform starts it again
                return True
            if points.due(share, at.scored_at):
                at.scored_at, began = share, self.now_s
                self._score(told, 0.2, timing.left(trainer))
                at.eval_s, at.scored_part = at.eval_s + self.now_s - began, 0.2
                at.last_eval_s, since = (self.now_s - began) / 0.2, since + self.now_s - began
            before = self.now_s
            self._work(case.step_s)
            at.step, steps = at.step + 1, steps + 1
            trainer.step_s = trainer.step_s or self.now_s - before
            trainer.step_s += 0.1 * (self.now_s - before - trainer.step_s)
            if self.now_s - last >= REPORT_S:
                trainer.pace.add(steps, self.now_s - since)
                last, since, steps = self.now_s, self.now_s, 0
                told.report(at.step, {}, timing.counted(trainer), timing.left(trainer))
            if self.now_s - saved[0] >= 60:
                saved = (self.now_s, vars(at) | {"phase_s": told.times(), "step_s": trainer.pace.step_s})
        self._score(told, 1.0, {phases.EXPORTING: timing.export_s(trainer)})
        with self._during(told, phases.EXPORTING, 0, {}, thought_s=timing.export_s(trainer)):
            for _second in range(10):
                self._work(case.export_s / 10)
                self._tell(told)
        return False

    def _score(self, told: phases.Phases, part: float, after: dict[str, float] | None) -> None:
        count = round(ROWS * 0.2 * part)
        thought_s = self.at.last_eval_s * part or None
        with self._during(told, phases.SCORING, count, after, thought_s=thought_s):
            for _row in range(count):
                self._work(self.case.score_s / (ROWS * 0.2))
                phases.advance()
                self._tell(told)

    def _during(
        self,
        told: phases.Phases,
        phase: str,
        total: int,
        after: dict[str, float] | None,
        thought_s: float | None = None,
    ) -> Any:
        """The block of a phase; its reports are made by `_tell`, as the clock does not run by itself."""
        self._about = (thought_s, after)
        self._told_at = self.now_s
        told_step = self.at.step
        with patch.object(phases, "EVERY_S", 1e9):
            return told.during(phase, step=told_step, total=total, thought_s=thought_s, after=after)

    def _tell(self, told: phases.Phases) -> None:
        if self.now_s - self._told_at >= REPORT_S:
            self._told_at = self.now_s
            told._report_counter(self.at.step, phases._current, *self._about)

    def _work(self, seconds: float) -> None:
        """Let so many seconds of work on a free machine pass, with noise and load."""
        noise = float(self.random.lognormal(-0.02, 0.2))
        self.now_s += seconds * noise * self.case.load(self.now_s)

    def _report(self, _step: int, line: dict[str, Any]) -> None:
        self.reports.append((self.now_s, {**line, "attempt": self.attempts}))


@dataclass(frozen=True)
class Outcome:
    """What one replay showed: errors are shares of the time that was really left."""

    whole_s: float
    error: float
    zero_s: float
    known: float
    falls: int
    complete: int


def judge(case: Case, seed: int = 0) -> Outcome:
    """Replay a case and compare what was reported with what happened."""
    replay = Replay(case, seed)
    reports = replay.run()
    end = replay.now_s
    begin = end / 10
    errors = [
        abs(line["eta_s"] - (end - at)) / max(end - at, 1.0)
        for at, line in reports
        if "eta_s" in line and begin <= at < end
    ]
    late = [line for at, line in reports if at >= begin]
    return Outcome(
        whole_s=end,
        error=median(errors),
        zero_s=_seconds_below_one(reports, end),
        known=sum("eta_s" in line for line in late) / len(late),
        falls=sum(later < earlier for earlier, later in _pairs(reports)),
        complete=sum(line.get("progress", 0.0) >= 1 for _at, line in reports),
    )


def _seconds_below_one(reports: list[tuple[float, dict[str, Any]]], end: float) -> float:
    moments = [at for at, _line in reports] + [end]
    return sum(moments[place + 1] - at for place, (at, line) in enumerate(reports) if line.get("eta_s", math.inf) < 1)


def _pairs(reports: list[tuple[float, dict[str, Any]]]) -> Iterator[tuple[float, float]]:
    """Progress of neighbouring reports of one phase of one attempt."""
    for (_, one), (_, two) in itertools.pairwise(reports):
        same = (one["phase"], one["attempt"]) == (two["phase"], two["attempt"])
        if same and "progress" in one and "progress" in two:
            yield one["progress"], two["progress"]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench progress")
    parser.add_argument("--recorded", nargs="*", metavar="FILE", help="judge recordings of real trainings instead")
    parser.add_argument("--record", nargs=3, metavar=("URL", "JOB", "FILE"), help="record a job; its token: AIP_TOKEN")
    args = parser.parse_args(arguments)
    if args.record:
        url, job, path = args.record
        recorded_progress.record(url, job, Path(path))
        args.recorded = [path]
    if args.recorded is not None:
        return recorded_progress.main(args.recorded, max_error=MAX_ERROR, max_zero_s=MAX_ZERO_S)
    print(f"{'case':38} {'took':>7} {'median error':>13} {'estimated':>10} {'< 1 s for':>10} {'falls':>6} {'100 %':>6}")
    bad = 0
    for case in CASES:
        found = judge(case)
        bad += (
            (case.bounded and found.error > MAX_ERROR)
            or found.zero_s > MAX_ZERO_S
            or found.falls > 0
            or found.complete > 0
        )
        print(
            f"{case.name:38} {found.whole_s:6.0f}s {found.error:12.1%} {found.known:10.0%} {found.zero_s:9.1f}s "
            f"{found.falls:6} {found.complete:6}"
        )
    print("Step times are synthetic; the estimator is that of the presets.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
