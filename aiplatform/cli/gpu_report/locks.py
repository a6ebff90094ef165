"""Locks that the kernel releases when the report ends, however it ends, and what a killed report left behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK, WORK, OWNER = "lock", ".work-", ".owner-"
NEW_S = 10.0  # a folder that was just made may not have its lock yet


@contextmanager
def held(path: Path) -> Iterator[Callable[[], None]]:
    """Hold an exclusive lock on a new file; gives a function that releases it early. The file is removed."""
    opened = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)]
    os.fchmod(opened[0], 0o644)  # jobs of other users wait for it
    fcntl.flock(opened[0], fcntl.LOCK_EX)

    def release() -> None:
        path.unlink(missing_ok=True)
        if opened:
            os.close(opened.pop())

    try:
        yield release
    finally:
        release()


def is_held(path: Path) -> bool:
    """Whether the process that made the file still lives."""
    try:
        opened = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(opened)
    return False


def sweep(folder: Path) -> None:
    """End the jobs and remove the files of reports that were killed."""
    from workers.execution import measurement_jobs

    for work in folder.glob(f"{WORK}*"):
        if not is_held(work / LOCK) and time.time() - work.stat().st_mtime > NEW_S:
            measurement_jobs.end_all(work)
            shutil.rmtree(work, ignore_errors=True)
    for path in folder.glob(f"{OWNER}*"):
        if not is_held(path):
            with suppress(OSError):
                path.unlink()
