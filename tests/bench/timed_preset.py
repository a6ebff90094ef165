"""A preset with its start and its overheads timed, for tests.bench.overhead.

It is run as `python -c` in a folder with a copy of the presets, as a job runs them. Its arguments are the name of a
preset, the class of its task and the seconds to learn after the first step; it ends without scores. Prints the parts
of the start, the steps after the first one, the seconds that they took and what of it each overhead took.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any

Moment = tuple[float, float]  # wall and CPU seconds


class Clock:
    """Times functions; a function called by another one that is timed counts for itself alone."""

    def __init__(self) -> None:
        self.costs: dict[str, list[float]] = {}  # label → calls, wall seconds, CPU seconds of the calling thread
        self.longest: dict[str, list[float]] = {}  # label → wall seconds of each call
        self._nested: list[Moment] = [(0.0, 0.0)]

    def time(self, owner: Any, name: str, label: str) -> None:
        original = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            began = time.perf_counter(), time.thread_time()
            self._nested.append((0.0, 0.0))
            try:
                return original(*args, **options)
            finally:
                wall, cpu = time.perf_counter() - began[0], time.thread_time() - began[1]
                inner, outer = self._nested.pop(), self._nested.pop()
                self._nested.append((outer[0] + wall, outer[1] + cpu))
                calls, walls, cpus = self.costs.get(label, [0, 0.0, 0.0])
                self.costs[label] = [calls + 1, walls + wall - inner[0], cpus + cpu - inner[1]]
                self.longest.setdefault(label, []).append(wall)

        setattr(owner, name, timed)


def main() -> None:
    """Run the preset."""
    started, marks = now(), [("interpreter", 0.0, time.process_time())]

    def mark(label: str) -> None:
        wall, cpu = now()
        marks.append((label, marks[0][1] + wall - started[0], cpu))

    name, _task_class, seconds = sys.argv[1:]
    marks[0] = ("interpreter", import_module("presets.run").process_age_s(), marks[0][2])
    import_module("torch")
    mark("import torch")
    module = import_module(f"presets.{name}")
    mark("import the preset")
    trainer_class, trainer_state = import_module("presets.trainer").Trainer, import_module("presets.trainer_state")
    clock, learning = Clock(), []
    for owner, method, label in (
        (trainer_class, "_report", "logging"),
        (trainer_class, "_agree", "control commands"),
        (trainer_class, "_demand_finite", "checks of the loss"),
        (trainer_class, "_end_of_step", "decisions on scores and checkpoints"),
        (trainer_state, "save", "checkpoints"),
    ):
        clock.time(owner, method, label)
    initialize, learn = trainer_class.__init__, trainer_class.learn

    def timed_initialize(trainer: Any, *args: Any) -> None:
        mark("data and network")
        initialize(trainer, *args)
        mark("optimizer and trainer")

    def timed_learn(trainer: Any, *args: Any) -> None:
        learn(trainer, *args)
        if not learning:
            mark("first step")
            clock.costs.clear()
            learning.append(time.perf_counter())
        elif time.perf_counter() - learning[0] >= float(seconds):
            trainer.run.control_file.write_text("finish quick")

    def end(trainer: Any) -> int:
        learning.append(time.perf_counter())
        learning.append(trainer.at.step - 1)
        return 0

    trainer_class.__init__, trainer_class.learn, trainer_class._leave = timed_initialize, timed_learn, end
    import_module("presets.run").begun()
    module.main()
    began, ended, steps = learning
    print(
        json.dumps(
            {
                "start": marks, "steps": steps, "seconds": ended - began, "costs": clock.costs,
                "checkpoints": clock.longest.get("checkpoints", []),
            }
        )
    )  # fmt: skip


def now() -> Moment:
    return time.perf_counter(), time.process_time()


main()
