"""What our Celery workers do otherwise: they look often for a broker that went away, and keep database connections."""

from __future__ import annotations

from functools import partial
from typing import Any

from celery import signals
from celery.worker import consumer
from django.db import close_old_connections

FIRST_S, STEP_S, LONGEST_S = 0.2, 0.2, 1.0
"""Seconds between tries. Celery's own grow to half a minute, for brokers that thousands of workers come back to."""


class Consumer(consumer.Consumer):
    """Celery's, but for the pauses between its tries to connect."""

    def ensure_connected(self, conn: Any) -> Any:
        conn.ensure_connection = partial(
            conn.ensure_connection, interval_start=FIRST_S, interval_step=STEP_S, interval_max=LONGEST_S
        )
        return super().ensure_connected(conn)


def let_go_of_old_connections(*, task: Any, **_sent: object) -> None:
    """Close connections that are broken or past their age (`CONN_MAX_AGE`), as each web request does."""
    if not task.request.is_eager:
        close_old_connections()


signals.task_prerun.connect(let_go_of_old_connections)
signals.task_postrun.connect(let_go_of_old_connections)
