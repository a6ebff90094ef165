"""Where the time of a step goes, measured on real steps of a training: a table of operations, parts, a time line.

Writes `profile/profile.json`, and `profile/trace.json.gz` for whoever wants to look at it in Perfetto. Steps are taken
twice: as they are, for how long one takes, and under torch.profiler, which slows them, for their operations.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from .profile_facts import (
    BACKWARD,
    FOLDER,
    FORWARD,
    MARK,
    MOST_STEPS,
    OPTIMIZER,
    OTHER,
    PARTS,
    USUAL_STEPS,
    WAIT,
    keep,
    keep_trace,
    operations,
)
from .run import COMPLETED, TERMINATED, say

if TYPE_CHECKING:
    from .trainer import Trainer

WARMING = 3  # steps before those that count


class Clock:
    """Seconds by part of a step, and where each part lay. `count`: how many lanes compute beside each other."""

    def __init__(self, count: int, settle: Callable[[], None]) -> None:
        self.count, self.settle = count, settle
        self.spent = dict.fromkeys(PARTS, 0.0)
        self.line: list[dict[str, Any]] = []
        self.began, self.step = time.perf_counter(), 0
        self._lock = threading.Lock()

    @contextmanager
    def part(self, name: str, lanes: int = 1) -> Iterator[None]:
        """Count what happens within as a part; of one that several lanes do beside each other each counts in part."""
        begun = time.perf_counter()
        with record_function(f"{MARK}{name}"):
            yield
            self.settle()
        ended = time.perf_counter()
        with self._lock:
            self.spent[name] += (ended - begun) / lanes
            begin_ms, took_ms = 1000 * (begun - self.began), 1000 * (ended - begun)
            self.line.append({"step": self.step, "part": name, "begin_ms": round(begin_ms, 3), "ms": round(took_ms, 3)})


def write(trainer: Trainer) -> int:
    """Fill the folder; the exit code."""
    trainer.run.listen()
    wanted = min(max(int(os.environ.get("AIP_SHOW_STEPS") or USUAL_STEPS), 1), MOST_STEPS)
    steps = _Steps(trainer)
    for _step in range(WARMING):
        steps.take()
    began = time.perf_counter()
    for _step in range(wanted):
        steps.take()
    step_s = (time.perf_counter() - began) / wanted
    clock = Clock(trainer.lanes.count if trainer.lanes else 1, steps.settle)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if trainer.ranks.device.type == "cuda" else [])
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)  # lanes are threads of their own
    with _apart(trainer, clock), profile(activities=activities, experimental_config=config) as seen:
        clock.began = time.perf_counter()
        for clock.step in range(wanted):
            steps.take(clock)
        slowed_s = (time.perf_counter() - clock.began) / wanted
    if trainer.run.terminated:
        return TERMINATED
    if trainer.ranks.leads:
        about = _facts(trainer, clock, wanted) | {
            "steps": wanted,
            "step_ms": round(1000 * step_s, 3),
            "profiled_step_ms": round(1000 * slowed_s, 3),
            **operations(seen, wanted),
        }
        folder = trainer.run.output_dir / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        keep_trace(seen, folder)
        keep(about, folder)
        trainer.run.report(trainer.at.step, {"progress": 1.0, "eta_s": 0})
        say(f"{1000 * step_s:.1f} ms a step; {about['of_operations']} kinds of operations over {wanted} steps")
    trainer.ranks.wait()
    return COMPLETED


class _Steps:
    """Real steps, one after the other, each with the next batch read ahead as in a training."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.place = trainer, (0, 0)
        self.ahead = trainer.read(self.place)

    def take(self, clock: Clock | None = None) -> None:
        """Take a step, told by a clock where there is one."""
        if clock is None:
            batch = self.ahead.result()
        else:
            with clock.part(WAIT):
                batch = self.ahead.result()
        self.place = (0, (self.place[1] + 1) % self.trainer.per_epoch)
        self.ahead = self.trainer.read(self.place)
        self.trainer.learn(batch, 0.0)
        self.settle()

    def settle(self) -> None:
        """Wait for the card: what was begun there belongs to whoever began it."""
        if self.trainer.ranks.device.type == "cuda":
            torch.cuda.synchronize()


@contextmanager
def _apart(trainer: Trainer, clock: Clock) -> Iterator[None]:
    """Let a trainer's own parts be told apart while it is profiled."""
    whole_gradients, loss, step = trainer._gradients, trainer.loss, trainer.optimizer.step

    def forward(*given: Any, **named: Any) -> Any:
        with clock.part(FORWARD, lanes=clock.count):
            return loss(*given, **named)

    def gradients(*given: Any, **named: Any) -> Any:
        before, began = clock.spent[FORWARD], time.perf_counter()
        with record_function(f"{MARK}gradients"):
            found = whole_gradients(*given, **named)
            clock.settle()
        took = time.perf_counter() - began
        within = clock.spent[FORWARD] - before
        clock.spent[BACKWARD] += max(took - within, 0.0)
        begin_ms = 1000 * (began + within - clock.began)
        line = {
            "step": clock.step,
            "part": BACKWARD,
            "begin_ms": round(begin_ms, 3),
            "ms": round(1000 * (took - within), 3),
        }
        clock.line.append(line)
        return found

    def optimize(*given: Any, **named: Any) -> Any:
        with clock.part(OPTIMIZER):
            return step(*given, **named)

    trainer.loss, trainer._gradients, trainer.optimizer.step = forward, gradients, optimize  # type: ignore[method-assign]  # put back after the profile
    try:
        yield
    finally:
        trainer.loss, trainer._gradients, trainer.optimizer.step = loss, whole_gradients, step  # type: ignore[method-assign]  # put back after the profile


def _facts(trainer: Trainer, clock: Clock, steps: int) -> dict[str, Any]:
    """Shares of the parts of a step, their line, and what it ran on."""
    told = sum(clock.spent.values())
    end = max((one["begin_ms"] + one["ms"] for one in clock.line), default=0.0) / 1000
    whole = max(end, told)
    clock.spent[OTHER] = whole - told
    device = trainer.ranks.device
    on_card = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if on_card else "cpu",
        "kind": device.type,
        "threads": torch.get_num_threads(),
        "lanes": clock.count,
        "batch_size": trainer.batch_size,
        "precision": "bfloat16" if trainer.in_bfloat16 else "float32",
        "compiled": bool(trainer.params.get("compile")),
        "shares": {name: round(spent / whole, 4) if whole else 0.0 for name, spent in clock.spent.items()},
        "timeline": [one for one in clock.line if one["step"] < MOST_STEPS][: 8 * MOST_STEPS],
        "memory_mib": round(torch.cuda.max_memory_allocated() / 2**20) if on_card else None,
    }
