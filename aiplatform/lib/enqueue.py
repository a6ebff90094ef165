"""Hand work to Celery by task name, after the transaction commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from celery import current_app
from django.db import transaction

from aiplatform.lib import after_commit, nudging


def enqueue(task: str, /, *, queue: str | None = None, **kwargs: object) -> None:
    """Send `task` once the current transaction commits; a rollback sends nothing.

    Sending by name keeps services free of task imports (tasks import services).
    A dead broker is logged, not raised: the row is saved and a sweep will find it.

    Args:
        queue: Celery queue; None is this node's queue for long work.
        kwargs: ids only, JSON-serialisable.
    """
    transaction.on_commit(lambda: _send(task, queue, kwargs), robust=True)


def enqueue_each(task: str, number: int, /, *, queue: str | None = None, at_most: int = 32) -> None:
    """Send `task` for one row; its only argument is a list of ids, so that one message may hold several.

    Several ids come together where the caller commits them in a block of `after_commit.collected`.

    Args:
        at_most: ids of one message.
    """

    def deliver(numbers: Sequence[int]) -> None:
        for first in range(0, len(numbers), at_most):
            _send(task, queue, {"ids": list(numbers[first : first + at_most])})

    after_commit.send((task, queue), number, deliver)


def _send(task: str, queue: str | None, kwargs: Mapping[str, object]) -> None:
    nudging.attempt(lambda: current_app.send_task(task, kwargs=dict(kwargs), queue=queue, retry=False), f"task={task}")
