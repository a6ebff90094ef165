"""How much of its cores a process gets where others work on them too, as the kernel counts it."""

from __future__ import annotations

import os
import time
from pathlib import Path

TASKS = Path("/proc/self/task")
BUSY = 1.3  # waiting makes work take so many times as long: from here on people are told


class Waiting:
    """Looks at how long threads ran and how long they waited for a core."""

    def __init__(self) -> None:
        self.ran_s, self.waited_s = 0.0, 0.0

    def slowdown(self) -> float:
        """How many times longer this thread's work took since the last call than it would on a free core.

        1.0 where the kernel does not tell.
        """
        ran, waited = _of_thread(os.getpid())
        since_ran, since_waited = ran - self.ran_s, waited - self.waited_s
        if since_ran < 0.05:  # too little to judge by
            return 1.0
        self.ran_s, self.waited_s = ran, waited
        return 1.0 + since_waited / since_ran


def share_used(wall_s: float, threads: int) -> float:
    """The share of `threads` cores this process used, 0..1, over the `wall_s` it lives."""
    return min(1.0, time.process_time() / max(wall_s * threads, 1e-9))


def _of_thread(thread: int) -> tuple[float, float]:
    try:
        ran_ns, waited_ns, _ = (TASKS / str(thread) / "schedstat").read_text().split()
    except (OSError, ValueError):
        return 0.0, 0.0
    return int(ran_ns) / 1e9, int(waited_ns) / 1e9
