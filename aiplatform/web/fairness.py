"""A limit of requests that one caller has in progress in a web process, so that no caller takes all threads.

Further requests of the caller wait in order; those that find the queue full, or wait too long, are answered with 429.
A caller is a user, once one of the requests has proven who that is, else an address: unproven tokens and cookies
cannot be used to appear as several callers. Uploads are received and streams are sent without a turn.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

MAX_RUNNING, MAX_RUNNING_OF_ADDRESS = 3, 6  # of the threads in aiplatform.web.handler
MAX_WAITING = 64  # a browser asks for all images of a page at once
WAIT_S = 20.0
RETRY_AFTER_S = 2
MAX_KNOWN = 10_000  # credentials whose user is remembered
EXEMPT = ("/healthz", "/static/")
_CREDENTIALS = (b"authorization", b"cookie")


class TooBusy(Exception):
    """The caller has too many requests in progress."""


class Turns:
    """Turns of callers in one process, used from one event loop."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._users: dict[bytes, int] = {}  # digest of credentials → user

    def remember(self, scope: dict[str, Any], user: int) -> None:
        """Note whose credentials a request carried; called once they are proven."""
        if (key := _credentials(scope)) is not None:
            if len(self._users) >= MAX_KNOWN:
                self._users.clear()
            self._users[key] = user

    def caller(self, scope: dict[str, Any]) -> str:
        """Return the name under which a request is counted."""
        key = _credentials(scope)
        user = self._users.get(key) if key is not None else None
        if user is not None:
            return f"user:{user}"
        return f"address:{(scope.get('client') or ('',))[0]}"

    @asynccontextmanager
    async def turn(self, scope: dict[str, Any]) -> AsyncIterator[None]:
        """Wait for a turn and hold it.

        Raises:
            TooBusy: the queue of the caller is full, or the wait took too long.
        """
        if scope["path"].startswith(EXEMPT):
            yield
            return
        caller = self.caller(scope)
        await self._acquire(caller)
        try:
            yield
        finally:
            self._end(caller)

    async def _acquire(self, caller: str) -> None:
        limit = MAX_RUNNING if caller.startswith("user:") else MAX_RUNNING_OF_ADDRESS
        if self._running[caller] < limit:
            self._running[caller] += 1
            return
        queue = self._waiting.setdefault(caller, deque())
        if len(queue) >= MAX_WAITING:
            raise TooBusy
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await asyncio.wait_for(asyncio.shield(turn), WAIT_S)
        except TimeoutError:
            self._give_up(caller, turn)
            raise TooBusy from None
        except asyncio.CancelledError:
            self._give_up(caller, turn)
            raise

    def _give_up(self, caller: str, turn: asyncio.Future[None]) -> None:
        if turn.done():  # the turn came in the same moment
            self._end(caller)
        else:
            turn.cancel()
            self._waiting[caller].remove(turn)

    def _end(self, caller: str) -> None:
        """Hand the turn to the next request of the caller."""
        queue = self._waiting.get(caller)
        if queue:
            queue.popleft().set_result(None)
            return
        self._waiting.pop(caller, None)
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]


def _credentials(scope: dict[str, Any]) -> bytes | None:
    values = [value for name, value in scope["headers"] if name in _CREDENTIALS]
    return hashlib.sha256(b"\n".join(values)).digest() if values else None
