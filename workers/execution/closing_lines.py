"""What is added to a job's log once its supervisor has ended: that it was killed, or that the job is tried again."""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path

from workers.supervisor import log_lines

log = logging.getLogger(__name__)

_SEEN_BYTES = 8192
_ERROR_MARK = " ERROR "  # of Python's logging
MAX_ERROR_LENGTH = 400


def last_error(path: Path) -> str:
    """The last line that a program logged as an error, without its time; "" where the end of the log has none."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _SEEN_BYTES))
            lines = file.read(_SEEN_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return ""
    for line in reversed(lines):
        _time, mark, message = line.partition(_ERROR_MARK)
        if mark and message.strip():
            return message.strip()[:MAX_ERROR_LENGTH]
    return ""


def add(path: Path, phase: str, code: str, /, **facts: object) -> None:
    """Add a line to the log at `path`, once.

    It is added before the row is moved and asked for again where that failed, so that neither is lost. A line of this
    code at the end of the log is that one. Nothing that goes wrong here keeps a job from moving on.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # it printed nothing
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        end = os.pread(descriptor, _SEEN_BYTES, max(0, size - _SEEN_BYTES)).decode(errors="replace")
        if any((entry := log_lines.read(line)) and entry[:2] == (phase, code) for line in end.split("\n")):
            return
        separator = "\n" if end and not end.endswith("\n") else ""
        os.write(descriptor, f"{separator}{log_lines.line(phase, code, **facts)}\n".encode())
    except OSError as exc:
        log.warning("log=%s nothing added: %s", path, exc)
    finally:
        os.close(descriptor)
