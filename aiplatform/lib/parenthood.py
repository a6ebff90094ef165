"""Parenthood: a process that ends with the one that started it, however that one ends."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def die_with_parent(number: signal.Signals) -> None:
    """Have the kernel send `number` to this process when the thread that started it is gone."""
    _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def worker_dies_with_server() -> None:
    """Where this process is a worker of a server (`multiprocessing`), die when the server does, or now if it did.

    A server that is killed can end none of its workers. They would hold its port, and the next one could not start.
    """
    server = multiprocessing.parent_process()
    if server is None:
        return
    die_with_parent(signal.SIGKILL)  # nobody is left who would end one that does not want to
    if os.getppid() != server.pid:
        os._exit(1)
