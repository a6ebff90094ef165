"""A preset training as jobs run it, ended after some seconds, with its steps counted.

Runs as `python -c` in a folder with a copy of the presets. Arguments: name of a preset, seconds to learn after the
first step. Prints the steps after the first one, their wall seconds, and the share of them spent on waiting for data.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any

waited = 0.0


class TimedBatch:
    """A batch that is being read; its `result` counts how long the training waits for it."""

    def __init__(self, future: Any) -> None:
        self.future = future

    def result(self) -> Any:
        global waited  # noqa: PLW0603 - one process is one training
        began = time.perf_counter()
        try:
            return self.future.result()
        finally:
            waited += time.perf_counter() - began


def main() -> None:
    """Run the preset until the time is over."""
    name, seconds = sys.argv[1:]
    module = import_module(f"presets.{name}")
    import torch  # after the presets, which set how its threads wait

    trainer_class = import_module("presets.trainer").Trainer
    read, learn = trainer_class.read, trainer_class.learn
    marks: list[tuple[float, int, float]] = []

    def mark(trainer: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        marks.append((time.perf_counter(), trainer.at.step, waited))

    def timed_learn(trainer: Any, *arguments: Any) -> None:
        learn(trainer, *arguments)
        if not marks:
            mark(trainer)
        elif time.perf_counter() - marks[0][0] >= float(seconds):
            trainer.run.control_file.write_text("finish quick")

    def leave(trainer: Any) -> int:
        mark(trainer)
        (began, first, before), (ended, last, after) = marks
        values = {"steps": last - first, "seconds": ended - began, "batch": trainer.batch_size}
        print("result", json.dumps(values | {"wait_share": (after - before) / (ended - began)}), flush=True)
        return 0

    trainer_class.read = lambda trainer, index: TimedBatch(read(trainer, index))
    trainer_class.learn, trainer_class._leave = timed_learn, leave
    import_module("presets.run").begun()
    module.main()


main()
