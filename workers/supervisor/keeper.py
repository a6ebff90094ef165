"""Record keeper: writes the records of one run, on a disk that may be full.

What the disk refuses waits in memory and is written once the disk takes it: no single write decides what becomes of a
job. The exit record has its space from before the command starts.
"""

import os
import time

from workers.supervisor import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from workers.supervisor.records import Name

RESERVE = ".exit"
_RESERVED_BYTES = 4096
_LOOK_S = 1.0
_AGAIN_S = 0.5


def reserve(run: "Name") -> None:
    """Take the space that the records of a run must have: of its end, and of a request to end it.

    Raises:
        OSError: there is no room; nothing has begun.
    """
    _write_file(os.path.join(run, RESERVE), b"\0" * _RESERVED_BYTES, os.O_TRUNC)
    os.close(os.open(os.path.join(run, records.LOG), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640))
    try:
        _write_file(os.path.join(run, records.REQUESTED), b"run", os.O_EXCL)
    except FileExistsError:  # somebody requested something before it began
        return


def _write_file(path: str, content: bytes, flags: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, 0o666)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def seal(run: "Name", value: object) -> None:
    """Write how a run ended, durably, into the space that was reserved for it.

    Raises:
        OSError: the disk takes it not even there.
    """
    content = records.as_text(value).encode()
    reserved, target = os.path.join(run, RESERVE), os.path.join(run, records.EXIT)
    try:
        descriptor = os.open(reserved, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # it never began, or did before an upgrade
        records.write(target, value, durable=True)
        return
    try:
        os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(reserved, target)
    records.sync_folder(run)


class RecordKeeper:
    """The records of a run; of several values that one of them had to wait with, the newest is written."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.was_full = False  # whether the disk had no room at any look
        self._owed: dict[str, object] = {}
        self._full_since: float | None = None
        self._look_next = 0.0

    def write(self, name: str, value: object) -> None:
        """Write a record now, or as soon as the disk takes it."""
        self._owed.pop(name, None)
        self._owed[name] = value
        self._flush()

    def check(self, now: float, *, due: bool = False) -> "float | None":
        """Write pending records, once a second; return how long the disk was full, in seconds, once it is not."""
        if now < self._look_next and not due:
            return None
        self._look_next = now + _LOOK_S
        self._flush()
        if self._owed or records.has_no_room(self.run):
            self._note_full(now)
        elif self._full_since is not None:
            span_s, self._full_since = now - self._full_since, None
            return span_s
        return None

    def seal(self, value: object, sleep: "Callable[[float], None]") -> None:
        """Write how the run ended, durably; return only when that is on the disk."""
        while True:
            try:
                seal(self.run, value)
                return
            except OSError as exc:
                if not records.is_refused(exc):
                    raise
            sleep(_AGAIN_S)

    def _flush(self) -> None:
        for name, value in list(self._owed.items()):
            try:
                records.write(os.path.join(self.run, name), value)
            except OSError as exc:
                if not records.is_refused(exc):
                    raise
                self._note_full(time.monotonic())
                return
            del self._owed[name]

    def _note_full(self, now: float) -> None:
        self.was_full = True
        if self._full_since is None:
            self._full_since = now
