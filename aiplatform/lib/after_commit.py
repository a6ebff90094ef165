"""Messages that are sent once a transaction commits, one by one or together.

with after_commit.collected():
    ...  # several transactions; equal destinations get one message, at the end of the block
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import transaction

log = logging.getLogger(__name__)

Deliver = Callable[[Sequence[Any]], None]
_collected: ContextVar[dict[Hashable, tuple[Deliver, list[Any]]] | None] = ContextVar("collected", default=None)


def send(destination: Hashable, item: Any, deliver: Deliver) -> None:
    """Call `deliver([item])` once the current transaction commits; a rollback sends nothing.

    Inside `collected` it is called once for each destination, with the different items of all callers in their order.

    Args:
        deliver: of several callers of one destination that of the first is called; what it raises is logged.
    """

    def committed() -> None:
        together = _collected.get()
        if together is None:
            deliver([item])
            return
        items = together.setdefault(destination, (deliver, []))[1]
        if item not in items:
            items.append(item)

    transaction.on_commit(committed, robust=True)


@contextmanager
def collected() -> Iterator[None]:
    """Send what transactions in this block commit at its end, also where it raises; an outer block takes it over."""
    if _collected.get() is not None:
        yield
        return
    together: dict[Hashable, tuple[Deliver, list[Any]]] = {}
    token = _collected.set(together)
    try:
        yield
    finally:
        _collected.reset(token)
        for destination, (deliver, items) in together.items():
            try:
                deliver(items)
            except Exception:
                log.exception("messages to %s were not sent", destination)
