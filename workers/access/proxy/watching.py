"""Who may stay in: what a credential opens is asked again every few seconds, also while an exchange goes on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from aiohttp import web

from workers.access.proxy.admissions import Grant
from workers.access.proxy.refusals import Refused

log = logging.getLogger(__name__)

#: Job, name of the port, credential.
Question = tuple[int, str, str]

HOLDS_S = 2.0
REMEMBERED = 5000
CLOSING_S = 2.0


@dataclass(eq=False)
class Exchange:
    """A request that is being answered, or an open socket. `refused` is set when it must end."""

    request: web.Request
    refused: asyncio.Event = field(default_factory=asyncio.Event)

    def break_off(self) -> None:
        """Cut the connection."""
        if self.request.transport is not None:
            self.request.transport.abort()


class Watch:
    """Answers of the last seconds, and the exchanges that lean on them."""

    def __init__(self, asking: Callable[[Question], Awaitable[Grant]]) -> None:
        self._asking = asking
        self._known: OrderedDict[Question, tuple[float, Grant]] = OrderedDict()
        self._pending: dict[Question, asyncio.Task[Grant]] = {}
        self._live: dict[Question, set[Exchange]] = {}
        self._task: asyncio.Task[None] | None = None

    async def get_grant(self, question: Question) -> Grant:
        """What a credential opens, at most two seconds old.

        Raises:
            Refused: nothing.
        """
        until, grant = self._known.get(question, (0.0, None))
        if grant is not None and time.monotonic() < until:
            return grant
        return await self._read_again(question)

    def forget(self, question: Question) -> None:
        """Ask again at the next request: what it opens has changed."""
        self._known.pop(question, None)

    @contextlib.contextmanager
    def over(self, question: Question, request: web.Request) -> Iterator[Exchange]:
        """Watch over an exchange while it lasts."""
        exchange = Exchange(request)
        self._live.setdefault(question, set()).add(exchange)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._check_open())
        try:
            yield exchange
        finally:
            mates = self._live[question]
            mates.discard(exchange)
            if not mates:
                del self._live[question]

    async def close(self) -> None:
        """Break off all open exchanges."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for exchange in [item for exchanges in self._live.values() for item in exchanges]:
            exchange.break_off()

    async def _read_again(self, question: Question) -> Grant:
        task = self._pending.get(question)
        if task is None:
            task = asyncio.create_task(self._remember(question))
            self._pending[question] = task
            task.add_done_callback(lambda _done: self._pending.pop(question, None))
        return await asyncio.shield(task)

    async def _remember(self, question: Question) -> Grant:
        self._known.pop(question, None)
        grant = await self._asking(question)
        self._known[question] = (time.monotonic() + HOLDS_S, grant)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return grant

    async def _check_open(self) -> None:
        """Check again all open exchanges; ends when there are none."""
        while self._live:
            await asyncio.sleep(HOLDS_S)
            for question in list(self._live):
                try:
                    await self._read_again(question)
                except Refused:
                    self._end(question)
                except Exception:  # the database is away: nobody is let in anew, who is in may stay until it is back
                    log.exception("job=%s port=%s cannot ask who may stay", question[0], question[1])

    def _end(self, question: Question) -> None:
        for exchange in list(self._live.get(question, ())):
            exchange.refused.set()
            asyncio.get_running_loop().call_later(CLOSING_S, exchange.break_off)
