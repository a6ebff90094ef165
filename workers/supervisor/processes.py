"""A tree of processes, as /proc tells it."""

import os
import signal

from workers.supervisor.records import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})


def children(pid: int) -> list[int]:
    """Return the living and dead-but-unreaped children of all threads of `pid`."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            found += map(int, text(f"/proc/{pid}/task/{thread}/children").split())
        except OSError:  # the thread ended while we looked
            continue
    return found


def descendants(pid: int) -> list[int]:
    """Return all descendants of `pid`, parents before their children."""
    found: list[int] = []
    seen = {pid}
    todo = [pid]
    while todo:
        for child in children(todo.pop(0)):
            if child not in seen:
                seen.add(child)
                found.append(child)
                todo.append(child)
    return found


def state(pid: int) -> str:
    """Return the one-letter state of /proc/PID/stat, or "X" for a process that is no more."""
    try:
        return text(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return "X"


def name(pid: int) -> str:
    """Return the short name of a process, "" if it is gone."""
    try:
        return text(f"/proc/{pid}/comm").strip()
    except OSError:
        return ""


def alive(pids: "Iterable[int]") -> list[int]:
    """Return those that still run: zombies count as dead."""
    return [pid for pid in pids if state(pid) not in "ZX"]


def send(pids: "Iterable[int]", number: signal.Signals) -> None:
    """Signal each process; one that just ended is no error."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def listeners(pids: "Iterable[int]") -> list[int]:
    """Return whom to ask to end: the first process, or what a shell in its place runs.

    A shell dies of SIGTERM without passing it on, and a script that wanted to
    save a checkpoint would never hear of it. torchrun passes it on by itself.

    Args:
        pids: parents before their children, as `descendants` returns them.
    """
    pids = list(pids)
    if not pids:
        return []
    asked = [pids[0]]
    while all(name(pid) in SHELLS for pid in asked):
        below = alive(child for pid in asked for child in children(pid))
        if not below:
            break
        asked = below
    return asked
