"""Sweeps: periodic tasks that continue what lost messages and dead workers left.

    sweeps.register("datasets.sweep")        # in AppConfig.ready()

The acting scheduler calls `send_due` between its passes; the sweeps themselves run on a CPU worker.
"""

from __future__ import annotations

from functools import partial

from celery import current_app

from aiplatform.lib import nudging
from aiplatform.lib.registry import Registry

EVERY_S = 20.0
AGAIN_S = 1.0
"""While the broker is away: what it lost is found soon after it is back."""
#: Celery tasks without arguments, safe to run twice, that are sent every 20 seconds.
TASKS: Registry[str] = Registry("sweep", name=str)
_sent = {"at": float("-inf")}


register = TASKS.register
names = TASKS.names


def send_due(moment_s: float) -> None:
    """Send all sweeps when 20 seconds have passed since the last time.

    Args:
        moment_s: a monotonic clock. Messages expire with the next round, so that none pile up while no worker runs.
    """
    if moment_s - _sent["at"] < EVERY_S:
        return
    _sent["at"] = moment_s
    for task in TASKS:
        if not nudging.attempt(partial(current_app.send_task, task, retry=False, expires=EVERY_S), f"task={task}"):
            _sent["at"] = moment_s - EVERY_S + AGAIN_S  # the broker is away
            return
