"""What a training is doing now, told to the platform every two seconds, whatever keeps the program busy."""

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
PACKING, LEARNING, SCORING, EXPORTING = "packing", "learning", "scoring", "exporting"  # the platform has words for them


class Phases:
    """Adds phase, overall progress and time left to what is reported. Progress never falls.

    Args:
        used_s: seconds worked since the job's start, pauses left out.
        tells: False on all ranks but the first, where everything here does nothing.
    """

    def __init__(self, run: Run, used_s: Callable[[], float], *, tells: bool = True) -> None:
        self.run, self.used_s, self.tells = run, used_s, tells
        self.phase = ""
        self.shown = 0.0

    def report(self, step: int, figures: Mapping[str, Any], left_s: float | None) -> None:
        """Report figures with where the training stands; `left_s` None: nobody can say."""
        if not self.tells:
            return
        stand: dict[str, Any] = {"phase": self.phase} if self.phase else {}
        if left_s is not None:
            used = self.used_s()
            self.shown = max(self.shown, used / (used + left_s) if used + left_s > 0 else 1.0)
            stand |= {"progress": round(self.shown, 4), "eta_s": round(left_s, 1)}
        self.run.report(step, {**figures, **stand})

    @contextmanager
    def during(self, phase: str, *, step: int, left_s: float | None) -> Iterator[None]:
        """Name what happens in this block, and go on telling while it lasts.

        Args:
            left_s: seconds until the model is there, as thought at the block's beginning.
        """
        before, self.phase = self.phase, phase
        over = threading.Event()
        teller = threading.Thread(target=self._tell, args=(over, step, left_s), daemon=True)
        if self.tells:
            self.report(step, {}, left_s)
            teller.start()
        try:
            yield
        finally:
            over.set()
            if teller.ident:
                teller.join()
            self.phase = before

    def _tell(self, over: threading.Event, step: int, left_s: float | None) -> None:
        began = time.monotonic()
        while not over.wait(EVERY_S):
            left = None if left_s is None else counted_down(left_s, time.monotonic() - began)
            self.report(step, {}, left)


@contextmanager
def packing(run: Run, params: Mapping[str, Any], ranks: Ranks) -> Iterator[None]:
    """Tell that images are being made ready, before there is a trainer that could."""

    def used_s() -> float:
        return time.monotonic() - STARTED

    budget_s = 60 * float(params["budget_minutes"])
    left_s = max(budget_s - used_s(), 0.0) if budget_s else None
    with Phases(run, used_s, tells=ranks.leads).during(PACKING, step=0, left_s=left_s):
        yield
