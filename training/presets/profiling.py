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
    MAX_STEPS,
    OPTIMIZER,
    OTHER,
    PARTS,
    USUAL_STEPS,
    WAIT,
    operations,
    write_profile,
    write_trace,
)
from .run import COMPLETED, TERMINATED, log_line

if TYPE_CHECKING:
    from .trainer import Trainer

WARMING = 3  # steps before those that count


class Clock:
    """Seconds by part of a step, and the position of each part. `count`: how many lanes compute in parallel."""

    def __init__(self, count: int, settle: Callable[[], None]) -> None:
        self.count, self.settle = count, settle
        self.spent = dict.fromkeys(PARTS, 0.0)
        self.line: list[dict[str, Any]] = []
        self.began, self.step = time.perf_counter(), 0
        self._lock = threading.Lock()

    @contextmanager
    def part(self, name: str, lanes: int = 1) -> Iterator[None]:
        """Count the time inside as a part; if several lanes run a part in parallel, each counts proportionally."""
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
    """Fill the folder; return the exit code."""
    trainer.run.listen()
    wanted = min(max(int(os.environ.get("AIP_SHOW_STEPS") or USUAL_STEPS), 1), MAX_STEPS)
    steps = _Steps(trainer)
    for _step in range(WARMING):
        steps.run()
    began = time.perf_counter()
    for _step in range(wanted):
        steps.run()
    step_s = (time.perf_counter() - began) / wanted
    clock = Clock(trainer.lanes.count if trainer.lanes else 1, steps.settle)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if trainer.ranks.device.type == "cuda" else [])
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)  # lanes are threads of their own
    with _apart(trainer, clock), profile(activities=activities, experimental_config=config) as profiler:
        clock.began = time.perf_counter()
        for clock.step in range(wanted):
            steps.run(clock)
        slowed_s = (time.perf_counter() - clock.began) / wanted
    if trainer.run.terminated:
        return TERMINATED
    if trainer.ranks.leads:
        facts = _facts(trainer, clock, wanted) | {
            "steps": wanted,
            "step_ms": round(1000 * step_s, 3),
            "profiled_step_ms": round(1000 * slowed_s, 3),
            **operations(profiler, wanted),
        }
        folder = trainer.run.output_dir / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        write_trace(profiler, folder)
        write_profile(facts, folder)
        trainer.run.report(trainer.at.step, {"progress": 1.0, "eta_s": 0})
        log_line(f"{1000 * step_s:.1f} ms a step; {facts['of_operations']} kinds of operations over {wanted} steps")
    trainer.ranks.wait()
    return COMPLETED


class _Steps:
    """Real steps, one after the other, each with the next batch read ahead as in a training."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.place = trainer, (0, 0)
        self.ahead = trainer.read(self.place)

    def run(self, clock: Clock | None = None) -> None:
        """Run a step, timed by a clock if there is one."""
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
        """Wait for the GPU, so that pending work is attributed to the part that launched it."""
        if self.trainer.ranks.device.type == "cuda":
            torch.cuda.synchronize()


@contextmanager
def _apart(trainer: Trainer, clock: Clock) -> Iterator[None]:
    """Measure the parts of a trainer separately while it is profiled."""
    whole_gradients, loss, step = trainer._gradients, trainer.loss, trainer.optimizer.step

    def forward(*args: Any, **kwargs: Any) -> Any:
        with clock.part(FORWARD, lanes=clock.count):
            return loss(*args, **kwargs)

    def gradients(*args: Any, **kwargs: Any) -> Any:
        before, began = clock.spent[FORWARD], time.perf_counter()
        with record_function(f"{MARK}gradients"):
            result = whole_gradients(*args, **kwargs)
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
        return result

    def optimize(*args: Any, **kwargs: Any) -> Any:
        with clock.part(OPTIMIZER):
            return step(*args, **kwargs)

    trainer.loss, trainer._gradients, trainer.optimizer.step = forward, gradients, optimize  # type: ignore[method-assign]  # put back after the profile
    try:
        yield
    finally:
        trainer.loss, trainer._gradients, trainer.optimizer.step = loss, whole_gradients, step  # type: ignore[method-assign]  # put back after the profile


def _facts(trainer: Trainer, clock: Clock, steps: int) -> dict[str, Any]:
    """Return the shares of the parts of a step, their timeline, and the hardware used."""
    measured_s = sum(clock.spent.values())
    end = max((entry["begin_ms"] + entry["ms"] for entry in clock.line), default=0.0) / 1000
    total_s = max(end, measured_s)
    clock.spent[OTHER] = total_s - measured_s
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
        "shares": {name: round(spent / total_s, 4) if total_s else 0.0 for name, spent in clock.spent.items()},
        "timeline": [entry for entry in clock.line if entry["step"] < MAX_STEPS][: 8 * MAX_STEPS],
        "memory_mib": round(torch.cuda.max_memory_allocated() / 2**20) if on_card else None,
    }
