"""How slowly a caller may send a body. One that trickles would keep a connection from others for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

IDLE_S = 60.0
"""A sender silent for so long has gone."""
SLOWEST = 1024
"""Bytes a second that a body arrives with on average, after `IDLE_S`."""

Receive = Callable[[], Awaitable[dict[str, Any]]]


class TooSlow(ConnectionError):
    """The sender was silent for too long, or trickles."""


class Pace:
    """The time one sender has left."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._arrived = 0

    def left_s(self) -> float:
        """Seconds within which the next piece has to arrive; 0 once there are none left."""
        allowed = IDLE_S + self._arrived / SLOWEST
        return max(0.0, min(IDLE_S, allowed - (time.monotonic() - self._began)))

    def count(self, message: dict[str, Any]) -> None:
        """Take note of a piece that arrived."""
        self._arrived += len(message.get("body", b""))


def paced(receive: Receive) -> Receive:
    """`receive` of an ASGI request whose sender keeps the pace.

    Raises:
        TooSlow: while waiting for the next piece.
    """
    pace = Pace()

    async def next_piece() -> dict[str, Any]:
        try:
            async with asyncio.timeout(pace.left_s()):
                message = await receive()
        except TimeoutError:
            raise TooSlow from None
        pace.count(message)
        return message

    return next_piece
