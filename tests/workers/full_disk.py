"""A supervisor whose nth write to its run directory finds the disk full: python -m tests.workers.full_disk RUN n [s].

The disk is full from that write on for `s` seconds. Without n it only counts: the number of writes goes to RUN/.writes.
"""

from __future__ import annotations

import builtins
import errno
import os
import sys
import time
from pathlib import Path

from workers.supervisor import daemon

WRITES = "writes"


def main(run: str, nth: int = 0, seconds: float = 0.0) -> int:
    """Run the supervisor of `run`; returns its exit code."""
    told = os.open(f"{run}.{WRITES}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    write, open_file, open_low = os.write, builtins.open, os.open
    state = {"count": 0, "full_until": 0.0}

    def count() -> None:
        state["count"] += 1
        write(told, b".")
        if state["count"] == nth:
            state["full_until"] = time.monotonic() + seconds
        if time.monotonic() < state["full_until"]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def of_run(target: object) -> bool:
        try:
            path = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else os.path.realpath(str(target))
        except OSError:
            return False
        return path.startswith(run)

    def counted(call):
        def checked(target, *args, **kwargs):
            if of_run(target):
                count()
            return call(target, *args, **kwargs)

        return checked

    class Low:
        """os.open of files that are made: one that exists takes no room."""

        def __call__(self, path, flags, *args, **kwargs):
            if flags & os.O_CREAT and not os.path.exists(path) and of_run(path):
                count()
            return open_low(path, flags, *args, **kwargs)

    def high(path, mode="r", *args, **kwargs):
        if "r" not in mode and of_run(path):
            count()
        return open_file(path, mode, *args, **kwargs)

    os.open, builtins.open = Low(), high
    for name in ("write", "pwrite", "replace", "fsync"):
        setattr(os, name, counted(getattr(os, name)))
    return daemon.main(["supervisor", run])


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve()), *map(float, sys.argv[2:])))
