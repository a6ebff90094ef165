"""Sockets that our side can close while their application waits for the next message.

granian keeps its lock on a connection while `receive` waits, and `websocket.close` waits for that lock: without this a
viewer who lost the right to look would go on looking until his browser says something.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]


class Closing:
    """`receive` and `send` of one connection for the application behind them."""

    def __init__(self, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]) -> None:
        self._receive, self._send = receive, send
        self._waiting: asyncio.Task[Message] | None = None
        self._code: int | None = None
        self._closed = asyncio.Event()

    async def receive(self) -> Message:
        """Return the next message; after a close of ours, that the connection is over."""
        if self._code is None:
            self._waiting = asyncio.create_task(self._next())
            try:
                return await self._waiting
            except asyncio.CancelledError:
                if self._code is None:
                    raise
        await self._closed.wait()
        return {"type": "websocket.disconnect", "code": self._code}

    async def send(self, message: Message) -> None:
        """Pass a message on; before the close message, cancel the waiting receive."""
        if message["type"] != "websocket.close":
            await self._send(message)
            return
        self._code = message.get("code", 1000)
        try:
            if self._waiting is not None:
                self._waiting.cancel()
                await asyncio.wait({self._waiting})
            await self._send(message)
        finally:
            self._closed.set()

    async def _next(self) -> Message:
        return await self._receive()
