"""Events: what happened to the attempts on this node since the agent looked at them.

The kernel reports records that supervisors write (inotify) and supervisors that end (pidfd); other processes report
attempts that start here and requests (`workers.core.agent_wakeup`). Attempts without events are polled more often.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from aiplatform.lib import inotify
from workers.core import agent_wakeup
from workers.supervisor import records

log = logging.getLogger(__name__)

RECORDS = frozenset({records.SUPERVISOR, records.STATUS, records.EXIT})
_PIPE, _FILES = -1, -2  # in place of an attempt


@dataclass
class Due:
    """Which attempts the agent should look at.

    Args:
        starts: attempts may have been started that the agent does not know.
    """

    everything: bool = False
    starts: bool = False
    attempts: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return self.everything or self.starts or bool(self.attempts)


class Events:
    """The events of one node. Nothing is received before `open`; `take_due` then returns only what `watch` added."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._selector = selectors.DefaultSelector()
        self._due = Due()
        self._pipe: agent_wakeup.Pipe | None = None
        self._files: inotify.Inotify | None = None
        self._requests = agent_wakeup.Requests(node)
        self._watches: dict[int, int] = {}  # watch by attempt
        self._attempts: dict[int, int] = {}  # attempt by watch
        self._jobs: dict[int, int] = {}  # attempt by job
        self._supervisors: dict[int, int] = {}  # pidfd by attempt

    @property
    def announce_starts(self) -> bool:
        """Whether `wait` returns when an attempt is started here."""
        return self._pipe is not None and self._pipe.descriptor >= 0

    def open(self, stopped: Callable[[], bool]) -> None:
        """Begin to receive events; `stopped` ends the thread that receives requests."""
        self._pipe = agent_wakeup.Pipe(self._node)
        if self.announce_starts:
            self._selector.register(self._pipe.descriptor, selectors.EVENT_READ, _PIPE)
            self._requests.start(stopped)
        try:
            self._files = inotify.Inotify()
        except OSError as exc:
            log.warning("node=%s no file notifications, running jobs are looked at all the time: %s", self._node, exc)
        else:
            self._selector.register(self._files.descriptor, selectors.EVENT_READ, _FILES)

    def watch(self, attempt: int, job: int, folder: Path) -> bool:
        """Report records of an attempt from now on; whether that is possible. Call it before reading them."""
        self._jobs[job] = attempt
        if attempt in self._watches:
            return True
        if self._files is None:
            return False
        try:
            watch = self._files.watch(folder)
        except OSError:  # it does not exist yet, or there are too many
            return False
        self._watches[attempt], self._attempts[watch] = watch, attempt
        return True

    def follow(self, attempt: int, supervisor: int) -> bool:
        """Report the end of a supervisor that was alive just now; whether that is possible."""
        if attempt in self._supervisors:
            return True
        try:
            descriptor = os.pidfd_open(supervisor)
        except OSError:  # it ended just now, or the kernel offers none
            return False
        self._supervisors[attempt] = descriptor
        self._selector.register(descriptor, selectors.EVENT_READ, attempt)
        return True

    def retain(self, attempts: Collection[int]) -> None:
        """Forget all other attempts."""
        for attempt in {*self._watches, *self._supervisors} - set(attempts):
            self._unfollow(attempt)
            watch = self._watches.pop(attempt, None)
            if watch is not None and self._files is not None:
                self._attempts.pop(watch, None)
                self._files.forget(watch)
        self._jobs = {job: attempt for job, attempt in self._jobs.items() if attempt in attempts}

    def wait(self, seconds: float) -> None:
        """Wait until something happens, at most `seconds`."""
        for key, _events in self._selector.select(max(0.0, seconds)):
            if key.data == _PIPE:
                self._read_pipe()
            elif key.data == _FILES:
                self._read_files()
            else:
                self._unfollow(key.data)
                self._due.attempts.add(key.data)

    def take_due(self) -> Due:
        """Return what happened since the last call."""
        due, self._due = self._due, Due()
        return due

    def close(self) -> None:
        """Stop receiving."""
        self.retain(())
        for source in (self._pipe, self._files):
            if source is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(source.descriptor)
                source.close()
        self._pipe = self._files = None
        self._selector.close()

    def _read_pipe(self) -> None:
        if self._pipe is not None:
            self._due.starts |= agent_wakeup.STARTED in self._pipe.read()
        jobs, lost = self._requests.take_all()
        self._due.attempts |= {self._jobs[job] for job in jobs & self._jobs.keys()}
        self._due.everything |= lost

    def _read_files(self) -> None:
        for watch, name in self._files.read() if self._files is not None else ():
            if watch == inotify.OVERFLOW:
                self._due.everything = True
            elif name in RECORDS and watch in self._attempts:
                self._due.attempts.add(self._attempts[watch])

    def _unfollow(self, attempt: int) -> None:
        descriptor = self._supervisors.pop(attempt, None)
        if descriptor is not None:
            self._selector.unregister(descriptor)
            os.close(descriptor)
