"""Bringing a tree of processes to rest or to an end, by steps, never waiting."""

import signal

from workers.supervisor import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Pids = Callable[[], list[int]]
    Send = Callable[[Iterable[int], signal.Signals], None]


DYING_S = 2.0
"""From KILL of a job's processes until what stands around them is killed too."""


class Ladder:
    """Ask by the control file, then by TERM, then KILL.

    TERM goes first to the command itself and, when half of the grace is over,
    to every process: data loader workers must not die while the training they
    serve still writes its checkpoint.

    Args:
        pids: the job's processes now, parents first; called at every step.
        ask_s: how long the script may take after the word in the control file; 0 skips that.
        grace_s: seconds from TERM to KILL.
        send: how processes are signalled.
    """

    def __init__(self, pids: "Pids", ask_s: float, grace_s: float, send: "Send" = processes.send) -> None:
        self.pids, self.ask_s, self.grace_s, self.send = pids, ask_s, grace_s, send
        self.begun: float | None = None
        self.termed: set[int] = set()
        self.killed = False
        self.killed_at: float | None = None  # when KILL was due for the first time
        self.bare_since: float | None = None  # since when only shells are left of what was asked

    def step(self, now: float) -> None:
        """Do what is due at `now` (monotonic seconds). Call it every 0.1 s or so."""
        if self.begun is None:
            self.begun = now
        since_term = now - self.begun - self.ask_s
        if since_term < 0:
            return
        pids = processes.alive(self.pids())
        if since_term >= self.grace_s:
            self.killed = self.killed or bool(pids)
            self.killed_at = now if self.killed_at is None else self.killed_at
            self.send(pids, signal.SIGKILL)
            return
        requested = pids if since_term >= self.grace_s / 2 else self._listeners(pids, now)
        new = [pid for pid in requested if pid not in self.termed]
        self.termed.update(new)
        self.send(new, signal.SIGTERM)
        self.send(new, signal.SIGCONT)  # a stopped process hears TERM only after it continues

    def is_spent(self, now: float) -> bool:
        """Whether everything was tried and had its time: what still holds the job is none of its processes."""
        return self.killed_at is not None and now - self.killed_at >= DYING_S

    def _listeners(self, pids: list[int], now: float) -> list[int]:
        """Who hears TERM first. A shell whose program just ended gets a second to end by itself, with its code."""
        requested = processes.listeners(pids)
        if not self.termed or not all(processes.name(pid) in processes.SHELLS for pid in requested):
            self.bare_since = None
            return requested
        if self.bare_since is None:
            self.bare_since = now
        return requested if now - self.bare_since >= 1 else []


class ProcessPause:
    """Stop every process of a tree, memory kept, and resume it later."""

    def __init__(self, pids: "Pids") -> None:
        self.pids = pids
        self._still = 0

    def pause(self) -> bool:
        """Stop what runs; True once two checks in a row found nothing running and no new process."""
        running = [pid for pid in self.pids() if not self._rests(pid)]
        processes.send(running, signal.SIGSTOP)
        self._still = 0 if running else self._still + 1
        return self._still >= 2

    def _rests(self, pid: int) -> bool:
        """Whether a process computes nothing: stopped, dead, or held in vfork by a child that is stopped."""
        state = processes.state(pid)
        if state in "TtZX":
            return True
        return state == "D" and any(processes.state(child) in "Tt" for child in processes.children(pid))

    def resume(self) -> bool:
        """Let every process go on, children first so that no parent finds a child still stopped; True once done."""
        self._still = 0
        processes.send(reversed(self.pids()), signal.SIGCONT)
        return True
