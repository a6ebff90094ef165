"""Log shipping: the node that writes a log pushes its bytes to the shared disk and reports the length.

A network file system keeps what a program writes on its own machine for up to half a minute. The agent runs on
that machine: once a second it flushes a log that grew, and tells the length that it sees.
"""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path

FLUSH_S = 1.0
NETWORK = ("nfs", "cifs", "smb", "ceph", "lustre", "glusterfs", "beegfs", "gpfs", "fuse.", "9p", "afs")


class Shipped:
    """One log file on its way."""

    def __init__(self, path: Path, *, network: bool | None = None) -> None:
        self.path = path
        self.network = on_network(path) if network is None else network
        self.told = -1
        self._flushed = float("-inf")

    def look(self, *, last: bool = False) -> int | None:
        """The length that others can see now, where it is news; None where nothing is.

        Args:
            last: nothing more is written: flush and tell whatever there is.
        """
        try:
            size = self.path.stat().st_size
        except OSError:
            return None
        if size == self.told and not last:
            return None
        if self.network:
            if not last and time.monotonic() - self._flushed < FLUSH_S:
                return None
            self._flushed = time.monotonic()
            flush(self.path)
        self.told = size
        return size


def flush(path: Path) -> None:
    """Write what this machine holds back of a file to where it lies."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:  # a full or broken disk is told elsewhere
        pass
    finally:
        os.close(descriptor)


def on_network(path: Path) -> bool:
    """Whether a path lies on a file system of another machine."""
    return kind_of_disk(path).startswith(NETWORK)


@cache
def _mounts() -> tuple[tuple[str, str], ...]:
    """(mount point, file system) of this process, longest first."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _dash, after = line.partition(" - ")
        found.append((before.split()[4].replace("\\040", " "), after.split()[0]))
    return tuple(sorted(found, key=lambda mount: -len(mount[0])))


def kind_of_disk(path: Path) -> str:
    """Name of the file system a path lies on, as the kernel calls it."""
    text = f"{path}/"
    return next((kind for point, kind in _mounts() if text.startswith(point.rstrip("/") + "/")), "")
