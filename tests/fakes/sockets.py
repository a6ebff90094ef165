"""A WebSocket client for ASGI applications, without a server."""

from __future__ import annotations

import asyncio
from typing import Any

from asgiref.testing import ApplicationCommunicator


class SocketClient(ApplicationCommunicator):
    """Speaks to `application` as a browser would, through a server like granian; headers are pairs of bytes."""

    def __init__(self, application: Any, path: str, headers: list[tuple[bytes, bytes]]) -> None:
        super().__init__(
            _served(application),
            {"type": "websocket", "path": path, "headers": headers, "query_string": b"", "subprotocols": []},
        )

    async def open(self) -> bool:
        """Shake hands; False where the server refuses before accepting."""
        await self.send_input({"type": "websocket.connect"})
        return bool((await self.receive_output(60))["type"] == "websocket.accept")

    async def say(self, text: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text})

    async def hear(self) -> dict[str, Any]:
        """The next thing the server sends: a text or a close."""
        return await self.receive_output(60)

    async def close(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(60)


def _served(application: Any) -> Any:
    """`application` behind a server whose connection has one lock: a close waits as long as `receive` does."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        lock = asyncio.Lock()

        async def receive_alone() -> Any:
            async with lock:
                return await receive()

        async def send_or_close(message: Any) -> None:
            if message["type"] != "websocket.close":
                await send(message)
                return
            async with lock:
                await send(message)

        await application(scope, receive_alone, send_or_close)

    return serve
