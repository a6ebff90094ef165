"""Waiting in asynchronous tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def until(condition: Callable[[], T], seconds: float = 60.0) -> T:
    """Look until `condition()` is true, and return what it says.

    Raises:
        TimeoutError: it did not become true in time.
    """
    async with asyncio.timeout(seconds):
        while not (answer := condition()):
            await asyncio.sleep(0.01)
    return answer
