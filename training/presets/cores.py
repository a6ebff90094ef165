"""How much of its cores a process gets where others work on them too, as the kernel counts it."""

from __future__ import annotations

import contextlib
from pathlib import Path

TASKS = Path("/proc/self/task")
FLAGS = Path("/proc/cpuinfo")
BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16", "bf16"})  # flags of x86 and of ARM
BUSY = 1.3  # waiting makes work take so many times as long: from here on people are told


class Waiting:
    """Looks at how long threads ran and how long they waited for a core."""

    def __init__(self) -> None:
        self.ran_s, self.waited_s = 0.0, 0.0

    def slowdown(self) -> float:
        """Return by what factor work took longer since the last call than on idle cores; 1.0 if it is unknown."""
        ran, waited = _of_threads()
        since_ran, since_waited = ran - self.ran_s, waited - self.waited_s
        if since_ran < 0.05:  # too little to judge by
            return 1.0
        self.ran_s, self.waited_s = ran, waited
        return 1.0 + since_waited / since_ran


def multiplies_bfloat16() -> bool:
    """Whether the processor has instructions for bfloat16, as the kernel tells; elsewhere it would be slower."""
    try:
        lines = FLAGS.read_text().splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return bool(BFLOAT16 & set(flags.split()))


def _of_threads() -> tuple[float, float]:
    """Seconds this process's threads ran, and waited for a core while they could have run."""
    ran_ns = waited_ns = 0
    for thread in TASKS.glob("*/schedstat"):
        with contextlib.suppress(OSError, ValueError):  # it ended meanwhile
            ran, waited, _ = thread.read_text().split()
            ran_ns, waited_ns = ran_ns + int(ran), waited_ns + int(waited)
    return ran_ns / 1e9, waited_ns / 1e9
