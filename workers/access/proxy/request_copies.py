"""Requests watched as they pass, and copies of them for a second server whose answers nobody gets."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from workers.access.proxy.forwarding import (
    BrokenOff,
    CallerGone,
    Copy,
    Forwarder,
    NotListening,
    PointsElsewhere,
    Receive,
    Scope,
    Send,
)

log = logging.getLogger(__name__)
AT_ONCE = 4  # requests kept or copied; those beyond are not, so that a slow copy holds up nobody
MAX_BYTES = 16 << 20  # of a request or an answer that is copied or compared
MAX_DURATION_S = 60.0


class Reading:
    """Passes the messages of a request on, and knows whether any of its body was read."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.begun = False

    async def receive(self) -> dict[str, Any]:
        message = await self._receive()
        self.begun = self.begun or bool(message.get("body"))
        return message


class Watched:
    """Passes the messages of one call on and notes what goes by.

    Args:
        keep: whether the bodies of both ways are kept for a copy.
    """

    def __init__(self, receive: Receive, send: Send, *, keep: bool) -> None:
        self._receive, self._send, self._keep = receive, send, keep
        self._began = time.perf_counter()
        self.asked, self.answered = bytearray(), bytearray()
        self.status = self.bytes_in = self.bytes_out = 0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    @property
    def is_complete(self) -> bool:
        """Whether the call was answered with 200 and both bodies were kept."""
        return self._keep and self.status == 200

    async def receive(self) -> dict[str, Any]:
        message = await self._receive()
        self.bytes_in += self._note(message, self.asked)
        return message

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        self.bytes_out += self._note(message, self.answered)
        await self._send(message)

    def _note(self, message: dict[str, Any], buffer: bytearray) -> int:
        body = message.get("body", b"")
        if self._keep:
            buffer += body
            self._keep = len(buffer) <= MAX_BYTES
        return len(body)


class Copier:
    """Sends copies; at most four at once."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._tasks: set[asyncio.Task[None]] = set()
        self._taken = 0

    def acquire(self) -> bool:
        """Acquire a slot for a request that is kept and copied; False where none is free."""
        if self._taken >= AT_ONCE:
            return False
        self._taken += 1
        return True

    def give_back(self) -> None:
        """Give a place back, of a request that is not copied."""
        self._taken -= 1

    def start(self, scope: Scope, path: str, copy: Copy, call: Watched) -> None:
        """Copy a call that was answered, in the slot acquired for it."""
        task = asyncio.get_running_loop().create_task(self._copy(dict(scope), path, copy, call))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.give_back()
        if not task.cancelled() and (failure := task.exception()) is not None:
            log.error("a copy of a request failed", exc_info=failure)

    async def end(self) -> None:
        """Wait for the copies under way."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _copy(self, scope: Scope, path: str, copy: Copy, call: Watched) -> None:
        got = Watched(_replayed(bytes(call.asked)), _unheard, keep=True)
        try:
            async with asyncio.timeout(MAX_DURATION_S):
                await self._forwarder.forward(scope, got.receive, got.send, copy.upstream, path)
        except (BrokenOff, PointsElsewhere, TimeoutError):
            got.status = 502
        except NotListening:
            got.status = 503
        except CallerGone:
            return
        if copy.upstream.on_done is not None:
            copy.upstream.on_done(got.status or 502, got.seconds, got.bytes_in, got.bytes_out)
        if got.is_complete:
            await copy.compare(bytes(call.asked), bytes(call.answered), bytes(got.answered))


def _replayed(body: bytes) -> Callable[[], Any]:
    """The messages of a request whose body is known, and then silence."""
    sent = False

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if sent:
            await asyncio.Event().wait()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _unheard(message: dict[str, Any]) -> None:
    return
