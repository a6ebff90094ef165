"""Hand work to Celery by task name, after the transaction commits."""

from celery import current_app
from django.db import transaction

from aiplatform.lib import nudging


def enqueue(task: str, /, *, queue: str | None = None, **kwargs: object) -> None:
    """Send `task` once the current transaction commits; a rollback sends nothing.

    Sending by name keeps services free of task imports (tasks import services).
    A dead broker is logged, not raised: the row is saved and a sweep will find it.

    Args:
        queue: Celery queue; None is this node's queue for long work.
        kwargs: ids only, JSON-serialisable.
    """

    def send() -> None:  # not functools.partial: a failing robust hook needs __qualname__
        nudging.attempt(lambda: current_app.send_task(task, kwargs=kwargs, queue=queue, retry=False), f"task={task}")

    transaction.on_commit(send, robust=True)
