"""The platform's clock: the database server's time. Rows that nodes write carry it, not the node's own time.

A machine whose clock is an hour off would otherwise end jobs over their time, or look silent. Each process
measures the difference once a minute; with SQLite there is one machine and nothing to measure.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.utils.timezone import now as own

EVERY_S = 60.0
_seen = {"at": float("-inf"), "off_s": 0.0}


def now() -> datetime:
    """The present by the platform's clock, aware, in UTC."""
    return own() + timedelta(seconds=offset_s())


def offset_s() -> float:
    """Seconds by which the platform's clock is ahead of this machine's."""
    if connection.vendor != "postgresql":
        return 0.0
    # processor time cannot be set wrong; a clock that jumps shows at the next measurement
    if time.monotonic() - _seen["at"] >= EVERY_S:
        with connection.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
            database_time = float(cursor.fetchone()[0])
        _seen.update(at=time.monotonic(), off_s=database_time - datetime.now(UTC).timestamp())
    return _seen["off_s"]
