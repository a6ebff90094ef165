"""Write moments of last use without waiting: a read never waits for a lock that a writer holds.

SQLite has one lock for all writes, which a writer may hold for many seconds. A stamp is tried once, at once; where the
lock is held it is dropped, and the next request tries again. What must not be dropped uses `write_at_once` and hands
the write to a worker where it returns false.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError, connections, transaction
from django.db.models import QuerySet

log = logging.getLogger(__name__)
POSTGRES_WAIT = "200ms"


def stamp(rows: QuerySet[Any], **values: Any) -> bool:
    """Update rows if no lock is in the way; return whether they were updated."""
    return write_at_once(rows.db, lambda: rows.update(**values), rows.model._meta.label)


def write_at_once(using: str, write: Callable[[], object], name: str) -> bool:
    """Call `write` in a transaction that does not wait for locks; return whether it was written.

    Args:
        using: alias of the database.
        name: names the write in the log.
    """
    try:
        with _unwaiting(using), transaction.atomic(using=using):
            if connections[using].vendor == "postgresql":
                with connections[using].cursor() as cursor:
                    cursor.execute(f"SET LOCAL lock_timeout = '{POSTGRES_WAIT}'")
            write()
    except OperationalError as error:
        log.info("write=%s not written at once: %s", name, error)
        return False
    return True


@contextmanager
def _unwaiting(using: str) -> Iterator[None]:
    """Let statements on SQLite fail at once where the lock is held."""
    connection = connections[using]
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()
    raw = connection.connection
    (timeout_ms,) = raw.execute("PRAGMA busy_timeout").fetchone()
    raw.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        raw.execute(f"PRAGMA busy_timeout = {int(timeout_ms)}")
