"""The consumer of our Celery workers: it looks often for a broker that went away."""

from __future__ import annotations

from functools import partial
from typing import Any

from celery.worker import consumer

FIRST_S, STEP_S, LONGEST_S = 0.2, 0.2, 1.0
"""Seconds between tries. Celery's own grow to half a minute, for brokers that thousands of workers come back to."""


class Consumer(consumer.Consumer):
    """Celery's, but for the pauses between its tries to connect."""

    def ensure_connected(self, conn: Any) -> Any:
        conn.ensure_connection = partial(
            conn.ensure_connection, interval_start=FIRST_S, interval_step=STEP_S, interval_max=LONGEST_S
        )
        return super().ensure_connected(conn)
