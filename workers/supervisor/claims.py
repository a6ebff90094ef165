"""The claim of a run directory: whoever makes supervisor.json decides how the run begins, and nobody does again."""

import fcntl
import os
import time

from workers.supervisor import keeper, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from workers.supervisor.records import Name

DISK_FULL_EXIT_CODE = 75
"""Exit code of a supervisor that did not begin because the disk is full."""


def claim(run: "Name") -> "dict[str, Any] | None":
    """Claim a run for the calling process, as its supervisor; None if it is claimed already.

    Raises:
        OSError: the disk takes no record.
    """
    lock = hold_back(run)
    try:
        return _make(run, {"pid": os.getpid(), "start_ticks": records.start_ticks(os.getpid())}, begins=True)
    finally:
        os.close(lock)


def hold_back(run: "Name") -> int:
    """Prevent the start of this run until the returned descriptor is closed; waits for others that hold it back.

    Who prepares a run writes as root into folders that are the job's once it began. A supervisor that an earlier,
    killed starter left behind may come at any moment: it waits here.

    Raises:
        OSError: the disk takes no record.
    """
    return _locked(run, ".prepare")


def _locked(run: "Name", name: str) -> int:
    lock = os.open(os.path.join(run, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def refuse(run: "Name", **ended: object) -> bool:
    """Claim a run that never starts, and write `ended` as its exit record; False if it is claimed already.

    Raises:
        OSError: the disk takes no record.
    """
    if _make(run, {"pid": os.getpid(), "start_ticks": None}, begins=False) is None:  # no process is that one
        return False
    keeper.seal(run, {"code": None, "signal": None, **ended})
    return True


def _make(run: "Name", process: "dict[str, Any]", *, begins: bool) -> "dict[str, Any] | None":
    lock = _locked(run, ".claim")
    try:
        if os.path.exists(os.path.join(run, records.SUPERVISOR)):
            return None
        if begins:
            keeper.reserve(run)
        record = {**process, "boot_id": records.boot_id(), "started_at": time.time(), "protocol": records.PROTOCOL}
        try:
            records.write(os.path.join(run, records.SUPERVISOR), record, durable=True)
        except OSError:
            records.remove(os.path.join(run, records.SUPERVISOR))  # one that may not last is none: ask again
            raise
        return record
    finally:
        os.close(lock)
