"""Sweep: kills what a job left, and what stands around it, until nothing of it lives or is seen to die."""

import signal
import time

from workers.supervisor import processes, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

REAP_S = 30.0  # how long the last processes may take to die before they are called unkillable; cards are slow to leave


def sweep(
    look: "Callable[[], list[int]]", around: list[int], wait: "Callable[[], None]", kill: "Callable[[], None] | None"
) -> tuple[int, list[int]]:
    """Kill until nothing lives.

    Args:
        look: what lives now.
        around: processes that are none of the job's own.
        wait: a moment's rest, in which the dead are reaped.
        kill: the kernel's way to kill all at once, where there is one.

    Returns:
        How many processes of the job were left, and those that even KILL did not end.
    """
    left = look()
    count, deadline = len([pid for pid in left if pid not in around]), time.monotonic() + REAP_S
    while left and time.monotonic() < deadline:
        processes.send(left, signal.SIGKILL)
        if kill:
            kill()
        wait()
        left = look()
    return count, left


def still(pids: list[int]) -> "Callable[[], list[int]]":
    """Return a function for those of these processes that still live; a later process with the same number is none."""
    ticks_by_pid = {pid: records.start_ticks(pid) for pid in pids}
    return lambda: [
        pid for pid, ticks in ticks_by_pid.items() if ticks is not None and records.start_ticks(pid) == ticks
    ]
