"""Ports of this test process alone: a block below those that the kernel gives to connections, held while it lives.

Steps of the gate run side by side, and gates of several people on one machine. A port that was found free and let go
could be anybody's before a server binds it: another test's, or one end of a connection. So each process holds a block,
by a name that only one may bind, and hands out the ports of its block in turn.
"""

from __future__ import annotations

import atexit
import itertools
import os
import socket
from collections.abc import Iterator

FIRST, END = 10_000, 32_400  # Linux gives 32768 and above to connections
JOBS, MEETINGS, OWN = 200, 100, 200
BLOCK = JOBS + MEETINGS + OWN


class Block:
    """The ports of one process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock, self.first = _held()
        own = self.first + JOBS + MEETINGS
        self.turn: Iterator[int] = itertools.cycle(
            range(own, own + OWN, 2)
        )  # `up` takes the next one, too: AIP_PORTS_PORT

    @property
    def jobs(self) -> str:
        """Where model servers listen, as the setting wants it."""
        return f"{self.first}-{self.first + JOBS - 1}"

    @property
    def meetings(self) -> str:
        """Where the parts of gangs meet, as the setting wants it."""
        return f"{self.first + JOBS}-{self.first + JOBS + MEETINGS - 1}"

    def free(self) -> int:
        """A port that nobody listens on; the one after it is nobody else's, either."""
        for _ in range(OWN // 2):
            port = next(self.turn)
            with socket.socket() as probe:
                try:
                    probe.bind(("", port))
                except OSError:  # a server of ours that lives on, or a connection of it not yet forgotten
                    continue
                return port
        raise RuntimeError(f"the ports from {self.first + JOBS + MEETINGS} are all in use")


_blocks: list[Block] = []


def own() -> Block:
    """The block of this process; a forked child takes one of its own."""
    if not _blocks or _blocks[-1].process != os.getpid():
        _blocks.append(Block())
    return _blocks[-1]


def _held() -> tuple[socket.socket, int]:
    """A name bound until this process ends, and the first port that goes with it."""
    for first in range(FIRST, END, BLOCK):
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0aip-test-ports-{first}")
        except OSError:
            lock.close()
            continue
        atexit.register(lock.close)
        return lock, first
    raise RuntimeError(f"every block of ports from {FIRST} to {END} is held by a test that runs")
