"""How well the remaining time of real trainings was estimated: `python -m tests.bench progress --recorded FILE …`.

`AIP_TOKEN=… python -m tests.bench progress --record URL JOB FILE` writes a recording: what the API shows of a job, read
once a second. The first line of a file is an object with `name` and `took_s`, each further one a list of the columns of
`Row`, written whenever one of them changed. tests/bench/recordings holds trainings of the presets on two cores.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from training.presets.budget import Budget, Pace

RECORDINGS = Path(__file__).with_name("recordings")
FINAL = frozenset({"succeeded", "finished_early", "failed", "stopped"})
ASK_S = 1.0


class Row(NamedTuple):
    """What was shown from `at_s` on; None is unknown, an empty phase is a job that does not run.

    Attributes:
        learned_s, learning_left_s: spent and remaining seconds of the phase "learning".
    """

    at_s: float
    attempt: int
    phase: str
    done: int | None
    total: int | None
    progress: float | None
    left_s: float | None
    learned_s: float
    learning_left_s: float | None


@dataclass(frozen=True)
class Recording:
    name: str
    took_s: float
    rows: list[Row]

    @classmethod
    def read(cls, path: Path) -> Recording:
        head, *rows = (json.loads(line) for line in path.read_text().splitlines())
        return cls(head["name"], head["took_s"], [Row(*row) for row in rows])

    def judged_from_s(self) -> float:
        """After the first tenth; of a training that was killed, nobody knows the end before it runs again."""
        last = next(row.at_s for row in self.rows if row.attempt == self.rows[-1].attempt and row.phase)
        return max(self.took_s / 10, last)


@dataclass(frozen=True)
class Judgement:
    """Errors are shares of the time that was really left, each second counting once."""

    error: float
    known: float
    zero_s: float
    falls: int


def judge(recording: Recording, left_s: list[float | None] | None = None) -> Judgement:
    """Compare the remaining times of a recording, or others of the same rows, with what happened."""
    shown = left_s if left_s is not None else [row.left_s for row in recording.rows]
    errors, seconds, zero_s = [], 0, 0.0
    ends = [row.at_s for row in recording.rows[1:]] + [recording.took_s]
    for row, end_s, left in zip(recording.rows, ends, shown, strict=True):
        zero_s += end_s - row.at_s if left is not None and left < 1 else 0.0
        for second in range(round(row.at_s), round(end_s)):
            if second < recording.judged_from_s():
                continue
            seconds += 1
            really_s = recording.took_s - second
            if left is not None:
                errors.append(abs(left - really_s) / max(really_s, 1.0))
    falls = sum(
        one.progress > two.progress
        for one, two in pairwise(recording.rows)
        if (one.phase, one.attempt) == (two.phase, two.attempt) and None not in (one.progress, two.progress)
    )
    return Judgement(median(errors), len(errors) / max(seconds, 1), zero_s, falls)


def replay(recording: Recording) -> list[float | None]:
    """The remaining times that the present estimator of learning by steps would have shown."""
    left: list[float | None] = []
    attempt, pace, done, learned_s = 0, Pace(), 0, 0.0
    for row in recording.rows:
        if row.attempt != attempt and row.phase == "learning":
            attempt, pace, done, learned_s = row.attempt, Pace(pace.step_s), row.done or 0, row.learned_s
            if attempt == 1:
                pace.add(done or 1, row.learned_s)  # the first step is reported at once
        elif row.phase == "learning" and row.done is not None and row.done > done:
            pace.add(row.done - done, row.learned_s - learned_s)
            done, learned_s = row.done, row.learned_s
        if row.total is None or row.left_s is None or row.learning_left_s is None or row.phase != "learning":
            left.append(row.left_s)
            continue
        mine_s = Budget(0, row.total).left_s(row.done or 0, row.learned_s, pace.step_s)
        left.append(row.left_s if mine_s is None else row.left_s - row.learning_left_s + mine_s)
    return left


def record(url: str, job: str, path: Path) -> None:
    """Write what the API shows of a job from its start to its end."""
    rows: list[list[Any]] = []
    began = 0.0
    for shown in _ask(f"{url.rstrip('/')}/api/v1/jobs/{job}/"):
        if shown["state"] == "queued" and not began:
            continue
        began = began or time.monotonic()
        runs = shown["state"] in {"running", "finishing"}
        columns = [shown[name] if runs else None for name in ("phase_done", "phase_total", "progress", "eta_s")]
        learning = next((one for one in shown["phase_times"] if one["phase"] == "learning"), {})
        row = [shown["attempt"], shown["phase"] if runs else "", *columns]
        row += [learning.get("spent_s") or 0.0, learning.get("left_s") if runs else None]
        if not rows or rows[-1][1:] != row:
            rows.append([round(time.monotonic() - began, 1), *row])
    head = {"name": shown["name"], "took_s": rows.pop()[0]}
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in [head, *rows]))


def _ask(address: str) -> Iterator[dict[str, Any]]:
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {os.environ['AIP_TOKEN']}"})
    while True:
        with urllib.request.urlopen(request, timeout=30) as response:
            shown = json.load(response)
        yield shown
        if shown["state"] in FINAL:
            return
        time.sleep(ASK_S)


def main(paths: list[str], *, max_error: float, max_zero_s: float) -> int:
    print(f"{'recording':44} {'took':>6} {'as shown':>9} {'replayed':>9} {'known':>6} {'< 1 s for':>10} {'falls':>6}")
    bad = 0
    for path in [Path(name) for name in paths] or sorted(RECORDINGS.glob("*.jsonl")):
        recording = Recording.read(path)
        shown, now = judge(recording), judge(recording, replay(recording))
        bad += now.error > max_error or now.zero_s > max_zero_s or shown.falls > 0
        print(
            f"{recording.name:44} {recording.took_s:5.0f}s {shown.error:9.1%} {now.error:9.1%} {shown.known:6.0%} "
            f"{now.zero_s:9.1f}s {shown.falls:6}"
        )
    print("As shown: by the version that ran. Replayed: its reports, by the present estimator of learning by steps.")
    return 1 if bad else 0
