"""Write moments of last use without waiting: a read never waits for a lock that a writer holds.

SQLite has one lock for all writes, which a writer may hold for many seconds. A stamp is tried once, at once; where the
lock is held it is dropped, and the next request tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError, connections, transaction
from django.db.models import QuerySet

log = logging.getLogger(__name__)
POSTGRES_WAIT = "200ms"


def stamp(rows: QuerySet[Any], **values: Any) -> bool:
    """Update rows if no lock is in the way; return whether they were updated."""
    try:
        with _unwaiting(rows.db), transaction.atomic(using=rows.db):
            if connections[rows.db].vendor == "postgresql":
                with connections[rows.db].cursor() as cursor:
                    cursor.execute(f"SET LOCAL lock_timeout = '{POSTGRES_WAIT}'")
            rows.update(**values)
    except OperationalError as error:
        log.info("model=%s stamp dropped: %s", rows.model._meta.label, error)
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
