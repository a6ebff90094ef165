"""A tree of processes, as /proc tells it."""

import os
import signal

from workers.supervisor.records import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_PAGE = os.sysconf("SC_PAGE_SIZE")
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})


def children(pid: int) -> list[int]:
    """Return the living and dead-but-unreaped children of all threads of `pid`."""
    pids: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return pids
    for thread in threads:
        try:
            pids += map(int, text(f"/proc/{pid}/task/{thread}/children").split())
        except OSError:  # the thread ended while we looked
            continue
    return pids


def descendants(pid: int) -> list[int]:
    """Return all descendants of `pid`, parents before their children."""
    pids: list[int] = []
    visited = {pid}
    todo = [pid]
    while todo:
        for child in children(todo.pop(0)):
            if child not in visited:
                visited.add(child)
                pids.append(child)
                todo.append(child)
    return pids


def state(pid: int) -> str:
    """Return the one-letter state of /proc/PID/stat, or "X" for a process that does not exist any more.

    A process whose first thread ended while others go on looks like a zombie there; the state is theirs then.
    """
    first = _state(f"/proc/{pid}/stat")
    if first != "Z":
        return first
    try:
        threads = [thread for thread in os.listdir(f"/proc/{pid}/task") if int(thread) != pid]
    except OSError:
        return "X"
    others = [letter for thread in threads if (letter := _state(f"/proc/{pid}/task/{thread}/stat")) not in "ZX"]
    return others[0] if others else "Z"


def _state(stat: str) -> str:
    try:
        return text(stat).rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return "X"


def exit_code(pid: int) -> int | None:
    """Return how a zombie ended, negative for a signal; None for a living process or where it is not ours to read."""
    try:
        fields = text(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return os.waitstatus_to_exitcode(int(fields[-1])) if fields[0] == "Z" else None


def name(pid: int) -> str:
    """Return the short name of a process, "" if it has ended."""
    try:
        return text(f"/proc/{pid}/comm").strip()
    except OSError:
        return ""


def memory_bytes(pids: "Iterable[int]", limit: int = 0) -> int:
    """Return what these processes hold in memory.

    The sum of resident pages is cheap but counts shared pages in every process. Only where it exceeds `limit` is
    it worth asking the kernel for proportional shares; where that is refused, the largest shared part counts once.
    """
    resident = shared_most = private = 0
    pids = list(pids)
    for pid in pids:
        try:
            _size, rss, shared = map(int, text(f"/proc/{pid}/statm").split()[:3])
        except (OSError, ValueError):
            continue
        resident += rss
        private += rss - shared
        shared_most = max(shared_most, shared)
    if resident * _PAGE <= limit:
        return resident * _PAGE
    try:
        return sum(map(_proportional, pids))
    except OSError:
        return (private + shared_most) * _PAGE


def _proportional(pid: int) -> int:
    """Bytes of a process with shared pages divided among their users; 0 for one that has ended.

    Raises:
        OSError: not ours to read.
    """
    try:
        for line in text(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def oom_kills() -> int:
    """Return how often the kernel ended a process for lack of memory since boot."""
    try:
        for line in text("/proc/vmstat").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


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
    requested = [pids[0]]
    while all(name(pid) in SHELLS for pid in requested):
        below = alive(child for pid in requested for child in children(pid))
        if not below:
            break
        requested = below
    return requested


def outcome(code: int | None, *, wrapped: bool) -> tuple[int | None, signal.Signals | None]:
    """Return exit code and signal of what ended with `code`; bubblewrap reports a signal as 128 + number."""
    if code is None:
        return None, None
    number = -code if code < 0 else code - 128 if wrapped and code > 128 else 0
    try:
        return code if not number else None, signal.Signals(number) if number else None
    except ValueError:  # exit(200) is no signal
        return code, None
