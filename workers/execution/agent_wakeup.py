"""Wakes the agent of this node early, by a named pipe in the node's own folder.

An agent without work looks for some every `agent.loop.IDLE_LOOK_S`; the Celery worker that starts a job wakes it.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from pathlib import Path

from django.conf import settings

MESSAGES = 4096  # bytes read at once: one for each wake-up


def _path(node: str) -> Path:
    return Path(settings.RUN_DIR) / f"agent-{node}.wake"


def notify(node: str) -> None:
    """Wake the agent if it runs; it looks by itself otherwise."""
    with contextlib.suppress(OSError):
        descriptor = os.open(_path(node), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(descriptor, b"\0")
        finally:
            os.close(descriptor)


class Wakeup:
    """The agent's end of the pipe. Where none can be made `wait` sleeps, and at most `without_s`."""

    def __init__(self, node: str, *, without_s: float) -> None:
        self._without_s = without_s
        self._descriptor = -1
        path = _path(node)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_fifo():
                path.unlink(missing_ok=True)
                os.mkfifo(path, 0o600)
            # also for writing, so that it is never at its end
            self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def wait(self, seconds: float) -> bool:
        """Sleep until `notify` is called, at most `seconds`; whether to look for work now."""
        if self._descriptor < 0:
            time.sleep(min(seconds, self._without_s))
            return True
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return False
        with contextlib.suppress(BlockingIOError):
            os.read(self._descriptor, MESSAGES)
        return True

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
