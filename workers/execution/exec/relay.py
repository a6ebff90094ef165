"""Exec relay: carries channels from other machines of the platform to exec servers of jobs on this one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from workers.execution.exec import greeting, socket_paths

log = logging.getLogger(__name__)

CHUNK = 65536
GREETING_S = 10.0
FLUSH_S = 60.0  # for the last bytes to leave; whoever reads nothing for so long is cut off
MAX_CHANNELS = 1024  # channels at a time
MAX_GREETING = 256  # of them, who has shown nothing yet: strangers leave room for the others

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def copy_both_ways(left: Streams, right: Streams, idle_s: float | None = None) -> None:
    """Copy bytes in both directions to the end of both, losing none; both are closed then.

    Args:
        idle_s: how long neither side may say anything; None: for ever.

    Raises:
        TimeoutError: neither did.
    """
    try:
        async with asyncio.timeout(idle_s) as silence:

            def on_data() -> None:
                if idle_s is not None:
                    silence.reschedule(asyncio.get_running_loop().time() + idle_s)

            await asyncio.gather(_copy(left[0], right[1], on_data), _copy(right[0], left[1], on_data))
    finally:
        await asyncio.gather(close(left[1]), close(right[1]))


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter, on_data: Callable[[], None]) -> None:
    """Copy one direction to its end. A closed target ends the other direction by itself."""
    with contextlib.suppress(OSError):
        while data := await source.read(CHUNK):
            on_data()
            target.write(data)
            await target.drain()
    with contextlib.suppress(OSError, RuntimeError):
        if target.can_write_eof() and not target.is_closing():
            target.write_eof()


async def close(writer: asyncio.StreamWriter) -> None:
    """Close once the last bytes have been sent, or abort where the peer does not read them."""
    writer.close()
    try:
        async with asyncio.timeout(FLUSH_S):
            await writer.wait_closed()
    except OSError:  # reset, or too late
        writer.transport.abort()


class Relay:
    """The relay of one machine."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(MAX_CHANNELS)
        self._greeting = asyncio.Semaphore(MAX_GREETING)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Authenticate a client and carry its channel to the end; refuse where too many are open."""
        if self._room.locked() or self._greeting.locked():
            writer.transport.abort()
            return
        async with self._room:
            try:
                async with self._greeting, asyncio.timeout(GREETING_S):
                    inner = await self._greet(reader, writer)
            except (OSError, ValueError) as exc:
                log.warning("peer=%s no channel: %s", writer.get_extra_info("peername"), exc or type(exc).__name__)
                writer.transport.abort()
                return
            await copy_both_ways((reader, writer), inner)

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Streams:
        """Find out that the asker is one of ours, and which job it means.

        Raises:
            OSError: that job has no server here.
            ValueError: no greeting.
        """
        challenge = greeting.challenge()
        writer.write(greeting.line(challenge=challenge))
        await writer.drain()
        target, proof = greeting.admit(greeting.read(await reader.readline()), challenge)
        inner = await asyncio.open_unix_connection(str(socket_paths.for_rank(*target)))
        writer.write(proof)
        await writer.drain()
        return inner


async def listen(host: str, port: int) -> asyncio.Server:
    """Begin to serve.

    Raises:
        OSError: the port is taken.
    """
    return await asyncio.start_server(Relay().serve, host, port, limit=greeting.MAX_BYTES, backlog=MAX_CHANNELS)
