"""Overdue ends: a supervisor that was told to stop and does not is ended itself, with all it kept.

A job without a sandbox can stop the process that looks after it, and a hung disk can hold any process for ever. What
even KILL does not end keeps its machine from new work (`workers.resources.nodes.unkillable`).
"""

from __future__ import annotations

import logging
import signal
import time
from pathlib import Path
from typing import Any

from workers.supervisor import processes, records
from workers.supervisor.sweep import REAP_S

log = logging.getLogger(__name__)

SLACK_S = 15.0  # beyond what a supervisor gives the job and itself, on a machine that is busy
STANDS_S = 5.0  # a supervisor that stands still although it was let go on is held by somebody
_TOLD = ("stop", "kill")


class Overdue:
    """Watches one supervisor from the word to stop to its end. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._word = ""
        self._told_at = 0.0
        self._stands_since: float | None = None
        self._killed_at: float | None = None

    def enforce(self, home: Path, supervisor: dict[str, Any], word: str) -> list[int]:
        """Apply what is due; return the processes that even KILL did not end, once that is certain.

        Args:
            kept: supervisor.json of a supervisor that lives.
            word: what it is told.
        """
        now, pid = time.monotonic(), int(supervisor["pid"])
        if word not in _TOLD:
            self._word = ""
            return []
        if word != self._word:
            self._word, self._told_at = word, now
        if processes.state(pid) in "Tt":
            self._stands_since = now if self._stands_since is None else self._stands_since
            processes.send([pid], signal.SIGCONT)
        else:
            self._stands_since = None
        if self._is_overdue(home, now):
            if self._killed_at is None:
                self._killed_at = now
                log.warning("supervisor=%s of %s does not end its job, it is killed with it", pid, home)
            tree = [pid, *processes.descendants(pid)]
            processes.send(tree, signal.SIGKILL)
            if now - self._killed_at > REAP_S:
                return processes.alive(tree)
        return []

    def _is_overdue(self, home: Path, now: float) -> bool:
        if self._killed_at is not None:
            return True
        if self._stands_since is not None and now - self._stands_since > STANDS_S:
            return True
        ticket = records.read(home / records.LAUNCH) or {}
        grace_s = float(ticket.get("stop_grace_s", 10.0)) if self._word == "stop" else 0.0
        return now - self._told_at > grace_s + REAP_S + SLACK_S


class Leftovers:
    """Gives what is left of a dead supervisor's job time to die."""

    def __init__(self) -> None:
        self._since: float | None = None

    def wait_for(self, left: list[int]) -> bool:
        """Whether to come again before the job counts as lost: something of it lives, and was killed just now."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        return bool(left) and now - self._since < REAP_S
