"""What our Celery workers do otherwise: they look often for a broker that went away, outlive it with work in their
hands, and keep database connections."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from celery import signals
from celery.worker import consumer
from django.db import close_old_connections
from kombu.transport import redis, virtual

log = logging.getLogger(__name__)

FIRST_S, STEP_S, LONGEST_S = 0.2, 0.2, 1.0
"""Seconds between tries. Celery's own grow to half a minute, for brokers that thousands of workers come back to."""


class QoS(redis.QoS):
    """Kombu's, but that a message whose acknowledgement failed no longer counts as one in the worker's hands.

    Kombu forgets it only after the broker has: of one that answers too late each such message took a place for ever,
    and with the last place gone the worker took no more work, though it answered every ping. What the broker still
    holds it gives out again after its visibility time-out; tasks are safe to run twice.
    """

    def ack(self, delivery_tag: Any) -> None:
        try:
            super().ack(delivery_tag)  # type: ignore[no-untyped-call]  # kombu has no types
        except Exception:
            virtual.QoS.ack(self, delivery_tag)  # type: ignore[no-untyped-call]  # kombu has no types
            raise


redis.Channel.QoS = QoS


class Consumer(consumer.Consumer):
    """Celery's, but for the pauses between its tries to connect, and for what it does with a broken connection."""

    def ensure_connected(self, conn: Any) -> Any:
        conn.ensure_connection = partial(
            conn.ensure_connection, interval_start=FIRST_S, interval_step=STEP_S, interval_max=LONGEST_S
        )
        return super().ensure_connected(conn)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Let go of a connection that broke, whatever letting go meets.

        Celery 5.7 collects it and closes it then. Closing gives messages back that nobody has acknowledged, over a new
        connection made as the collected transport says, which says nothing any more: an AttributeError, of which the
        worker died with all that it was doing. Such messages are lost, as if the worker had died: the rows tell.
        """
        try:
            super().on_connection_error_after_connected(exc)
        except Exception as failed:  # noqa: BLE001 - of a connection that is given up already
            log.warning("a broken connection to the broker was left open: %r", failed)


def let_go_of_old_connections(*, task: Any, **_sent: object) -> None:
    """Close connections that are broken or past their age (`CONN_MAX_AGE`), as each web request does."""
    if not task.request.is_eager:
        close_old_connections()


signals.task_prerun.connect(let_go_of_old_connections)
signals.task_postrun.connect(let_go_of_old_connections)
