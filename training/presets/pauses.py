"""What a program without the trainer's loop needs to be a good job: reports, pauses, an end at a signal."""

from __future__ import annotations

import json
import time
from typing import Any

import torch

from . import phases
from .ranks import Ranks
from .run import STARTED, Run, log_line

PAUSE_S, REPORT_S = 0.2, 2.0
SURE_FROM = 0.05  # progress from which a remaining time is reported
EXPORT_S = 2.0  # what writing the model takes
ALONE = Ranks(0, 1, torch.device("cpu"))


class Ended(Exception):
    """A signal requested the end of the program."""


class Pausable:
    """Tells how far a run is, and waits while it is paused, wherever the program calls `between`."""

    def __init__(self, run: Run) -> None:
        self.run, self.paused_s, self.reported_at = run, 0.0, 0.0
        self.phases = phases.Phases(run)
        self.phases.enter(phases.LEARNING)
        self.image_s: float | None = None  # reading one image, once that is known
        self.scored = 0  # images to score on

    def used_s(self) -> float:
        """Seconds worked, pauses left out."""
        return self.run.clock() - STARTED - self.paused_s

    def looked_through(self, images: int, scored: int) -> None:
        """Say that all images to learn from were read once, which tells how long scoring others will take."""
        self.image_s, self.scored = self.phases.seconds(phases.LEARNING) / max(images, 1), scored

    @property
    def scoring_s(self) -> float | None:
        """What scoring is thought to take."""
        return None if self.image_s is None else self.image_s * self.scored

    def between(self, step: int, figures: dict[str, float], progress: float) -> None:
        """Report figures at once, the progress of the learning (0..1) now and then; wait while paused.

        Raises:
            Ended: a signal came.
        """
        self.rest(step)
        now = time.monotonic()
        if figures or now - self.reported_at >= REPORT_S:
            self.reported_at = now
            counted = {"progress": round(min(progress, phases.MAX_SHARE), 4)} if progress > 0 else {}
            self.phases.report(step, figures, counted, self._left(progress))

    def _left(self, progress: float) -> dict[str, float] | None:
        if progress < SURE_FROM or self.scoring_s is None:
            return None
        learning_s = self.phases.seconds(phases.LEARNING) * (1 - min(progress, 1.0)) / progress
        return {phases.LEARNING: learning_s, phases.SCORING: self.scoring_s, phases.EXPORTING: EXPORT_S}

    def rest(self, step: int) -> None:
        """Wait while paused, between two images of another phase.

        Raises:
            Ended: a signal came.
        """
        if self.run.requested() == "pause":
            self._rest(step)
        if self.run.terminated:
            raise Ended

    def _rest(self, step: int) -> None:
        log_line(f"paused at step {step}")
        began = self.run.clock()
        while self.run.requested() == "pause" and not self.run.terminated:
            time.sleep(PAUSE_S)
        paused_s = self.run.clock() - began
        self.paused_s += paused_s
        self.phases.leave_out(paused_s)
        log_line(f"continued at step {step}")

    def completed(self, step: int, figures: dict[str, Any]) -> None:
        """Write the metrics for the platform and log the end of the training."""
        self.phases.enter(phases.EXPORTING)  # until the program ends
        times = {phase: round(seconds, 1) for phase, seconds in self.phases.times().items()}
        summary = {**figures, "steps": step, "seconds": round(self.used_s(), 1), "phase_seconds": times}
        (self.run.output_dir / "metrics.json").write_text(json.dumps(summary, indent=1))
        self.phases.report(step, {}, {}, {})
        log_line(f"completed after {step} steps in {self.used_s():.0f} s")
