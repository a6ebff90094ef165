"""Changes to Celery workers: short pauses before they connect again, survival of a lost broker with tasks in hand,
database connections that stay open, and a pool that grows only for tasks that wait."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import Any

from celery import signals
from celery.worker import autoscale, consumer, state
from django.db import close_old_connections
from kombu.asynchronous import get_event_loop
from kombu.transport import redis, virtual

log = logging.getLogger(__name__)

FIRST_S, STEP_S, LONGEST_S = 0.2, 0.2, 1.0
"""Seconds between tries. Celery's own grow to half a minute, for brokers that thousands of workers come back to."""
GROW_AFTER_S, UNUSED_S = 0.25, 60.0
"""How long a task waits before another process is forked for it; how long that one stays after nothing has waited."""


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


class PoolScaler(autoscale.Autoscaler):
    """Forks a further process when a task has waited for `GROW_AFTER_S`, and ends it when none has for `UNUSED_S`.

    A process that has run tasks holds some 40 MiB of its own. Celery's scaler grows the pool as soon as two tasks are
    in the worker's hands, which happens with each round of sweeps, and may end a process that was just sent a task.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._needed_at = time.monotonic()

    def maybe_scale(self, req: Any = None) -> None:
        """Called for each received task, and without one every half minute."""
        if req is not None:
            loop = get_event_loop()
            if loop and self.processes < self.max_concurrency and len(state.reserved_requests) > self.processes:
                loop.call_later(GROW_AFTER_S, self._grow_for, req)  # type: ignore[no-untyped-call]  # kombu has no types
            return
        unused = not state.reserved_requests and time.monotonic() - self._needed_at >= UNUSED_S
        if unused and self.processes > self.min_concurrency:
            self._shrink(self.processes - self.min_concurrency)
            self.pool.maintain_pool()

    def _grow_for(self, req: Any) -> None:
        """Fork a process if this task still waits for one."""
        if req not in state.reserved_requests or req in state.active_requests:
            return
        self._needed_at = time.monotonic()
        if self.processes < self.max_concurrency:
            self._grow(1)
            self.pool.maintain_pool()


def let_go_of_old_connections(*, task: Any, **_sent: object) -> None:
    """Close connections that are broken or past their age (`CONN_MAX_AGE`), as each web request does."""
    if not task.request.is_eager:
        close_old_connections()


signals.task_prerun.connect(let_go_of_old_connections)
signals.task_postrun.connect(let_go_of_old_connections)
