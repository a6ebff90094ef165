"""What a program without the trainer's loop needs to be a good job: reports, pauses, an end at a signal."""

from __future__ import annotations

import json
import time
from typing import Any

import torch

from . import phases
from .ranks import Ranks
from .run import STARTED, Run, say

PAUSE_S, REPORT_S = 0.2, 2.0
ALONE = Ranks(0, 1, torch.device("cpu"))


class Ended(Exception):
    """A signal asked the program to end."""


class Pausable:
    """Tells how far a run is, and waits while it is paused, wherever the program calls `between`."""

    def __init__(self, run: Run) -> None:
        self.run, self.paused_s, self.reported_at = run, 0.0, 0.0
        self.phases = phases.Phases(run, self.used_s)
        self.phases.phase = phases.LEARNING

    def used_s(self) -> float:
        """Seconds worked, pauses left out."""
        return time.monotonic() - STARTED - self.paused_s

    def between(self, step: int, figures: dict[str, float], progress: float) -> None:
        """Report figures at once, the progress (0..1) now and then; wait while paused.

        Raises:
            Ended: a signal came.
        """
        if self.run.requested() == "pause":
            self._rest(step)
        if self.run.terminated:
            raise Ended
        now = time.monotonic()
        if figures or now - self.reported_at >= REPORT_S:
            self.reported_at = now
            self.phases.report(step, figures, self.used_s() * (1 - progress) / max(progress, 0.01))

    def _rest(self, step: int) -> None:
        say(f"paused at step {step}")
        began = time.monotonic()
        while self.run.requested() == "pause" and not self.run.terminated:
            time.sleep(PAUSE_S)
        self.paused_s += time.monotonic() - began
        say(f"continued at step {step}")

    def completed(self, step: int, figures: dict[str, Any]) -> None:
        """Leave the figures for the platform and say that it is over."""
        whole = {**figures, "steps": step, "seconds": round(self.used_s(), 1)}
        (self.run.output_dir / "metrics.json").write_text(json.dumps(whole, indent=1))
        self.run.report(step, {"progress": 1.0, "eta_s": 0})
        say(f"completed after {step} steps in {self.used_s():.0f} s")
