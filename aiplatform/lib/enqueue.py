"""Hand work to Celery by task name, after the transaction commits."""

import logging

from celery import current_app
from django.db import transaction

log = logging.getLogger(__name__)


def enqueue(task: str, /, *, queue: str | None = None, **kwargs: object) -> None:
    """Nudge `task` once the current transaction commits; a rollback sends nothing.

    Sending by name keeps services free of task imports (tasks import services).
    A dead broker is logged, not raised: the row is saved and a sweep will find it.

    Args:
        queue: Celery queue; None is this node's queue for long work.
        kwargs: ids only, JSON-serialisable.
    """

    def send() -> None:  # not functools.partial: a failing robust hook needs __qualname__
        try:
            current_app.send_task(task, kwargs=kwargs, queue=queue, retry=False)
        except Exception as exc:  # noqa: BLE001 - whatever the transport raises, the row is already saved
            log.warning("task=%s not sent, the sweep will find its row: %s", task, exc)

    transaction.on_commit(send, robust=True)
