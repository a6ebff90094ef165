"""Time limit for a call, enforced in the thread that makes it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from django.db import connection


@contextmanager
def at_most(seconds: float, late: Exception) -> Iterator[None]:
    """Raise `late` in the body when it is not over after `seconds`; waiting in a system call is interrupted too.

    It needs the alarm clock of the process, which only the main thread has: the Celery workers that start jobs run
    each task there. In another thread the body just runs; the agent, which has such threads, looks at the clock itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> NoReturn:
        if not connection.in_atomic_block:
            connection.close()  # it may have been interrupted in the middle of a question
        raise late

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
