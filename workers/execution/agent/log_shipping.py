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

    def check(self, *, last: bool = False) -> int | None:
        """Return the length that others can see now where it is new; otherwise None.

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
    """Write what this node buffers of a file to its storage."""
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
    """Whether a path is on a network file system."""
    return kind_of_disk(path).startswith(NETWORK)


@cache
def _mounts() -> tuple[tuple[str, str], ...]:
    """(mount point, file system) of this process, longest first."""
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _dash, after = line.partition(" - ")
        mounts.append((before.split()[4].replace("\\040", " "), after.split()[0]))
    return tuple(sorted(mounts, key=lambda mount: -len(mount[0])))


def kind_of_disk(path: Path) -> str:
    """Name of a path's file system, as the kernel calls it."""
    text = f"{path}/"
    return next((kind for point, kind in _mounts() if text.startswith(point.rstrip("/") + "/")), "")
