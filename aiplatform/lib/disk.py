"""A disk without room: one error, whichever part meets it first."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError

NO_ROOM_BYTES = 64 << 10
"""With less than this free a disk counts as full."""
FULL = "disk.full"
wording.register(
    "disk",
    {
        "full": _(
            "The disk of the platform is full, so this was not saved. Earlier data is safe, and running "
            "jobs continue. Ask an administrator to free disk space, then try again."
        )
    },
)
_FULL = {errno.ENOSPC, errno.EDQUOT}
_POSTGRESQL_FULL = "53100"
#: Message of SQLite when it cannot even create its journal files.
_SQLITE_MAYBE = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}


class DiskFull(DomainError, code="disk_full", status=507):
    """The platform's disk has no room for the requested operation; nothing of it was saved."""

    def __init__(self, message: object = None, /, *, field: str | None = None, **facts: object) -> None:
        super().__init__(wording.message(FULL) if message is None else message, field=field, **facts)


def sentence() -> str:
    """What happened, and what to do about it."""
    return str(wording.message(FULL))


def has_no_room(path: Path) -> bool:
    """Return whether so little is free on the disk of `path` that nothing can be written."""
    try:
        return shutil.disk_usage(path).free < NO_ROOM_BYTES
    except OSError:
        return False


def is_full(exc: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, means a full disk: of the system, SQLite or PostgreSQL."""
    visited: set[int] = set()
    while exc is not None and id(exc) not in visited:
        visited.add(id(exc))
        if isinstance(exc, DiskFull) or _says_full(exc):
            return True
        exc = exc.__cause__ or exc.__context__
    return False


def _says_full(exc: BaseException) -> bool:
    if isinstance(exc, OSError):
        return exc.errno in _FULL
    code = getattr(exc, "sqlite_errorcode", None)
    if code is not None:
        primary = int(code) & 0xFF
        return primary == sqlite3.SQLITE_FULL or (primary in _SQLITE_MAYBE and has_no_room(settings.DATA_ROOT))
    return getattr(exc, "sqlstate", None) == _POSTGRESQL_FULL
