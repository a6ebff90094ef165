"""Bytes between an SSH channel and a job: back-pressure both ways, and an end."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import asyncssh

if TYPE_CHECKING:
    from workers.access.ssh.gateway.connection import Gateway

CHUNK, MAX_WAITING_BYTES = 1 << 16, 1 << 20


class Bridge:
    """What a shell and a forwarded connection have in common: a channel, and a stream to the job.

    A `cat bigfile` to a sleeping laptop holds two windows here, not the file.
    """

    chan: Any
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter | None = None

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self._room = asyncio.Event()
        self._room.set()
        self._draining: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, chan: Any) -> None:
        self.chan = chan
        self.gateway.channels += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.gateway.channels -= 1
        self._room.set()
        if self.writer is None:
            if self._task is not None:  # it was still being opened
                self._task.cancel()
        elif exc:
            self.writer.transport.abort()  # close() would wait for a reader for ever
        else:
            self.writer.close()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    async def send_to_client(self, data: bytes, datatype: int | None = None) -> None:
        """Send bytes to the client, when it has room."""
        await self._room.wait()
        self.chan.write(data, datatype)

    def send(self, data: bytes) -> None:
        """Pass bytes on to the job; the client waits while too many are under way."""
        if self.writer is None or self.writer.is_closing():
            return
        self.writer.write(data)
        if self._draining is None and self.writer.transport.get_write_buffer_size() > MAX_WAITING_BYTES:
            self.chan.pause_reading()
            self._draining = asyncio.create_task(self._drain(self.writer))

    async def _drain(self, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await writer.drain()
        self._draining = None
        self.chan.resume_reading()


class Forward(Bridge, asyncssh.SSHTCPSession, asyncssh.SSHUNIXSession):
    """A connection to a port or socket of the job, one from there to the client, or a jump."""

    def __init__(self, gateway: Gateway, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(gateway)
        self.reader, self.writer = reader, writer
        self._said_all = self._heard_all = False

    def session_started(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while data := await self.reader.read(CHUNK):
                await self.send_to_client(data)
            self.chan.write_eof()
            self._said_all = True
            if self._heard_all or (self.writer is not None and self.writer.is_closing()):
                self.chan.close()
        except OSError:
            self.chan.close()

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self.gateway.forwarded += len(data)
        self.send(data)

    def eof_received(self) -> bool:
        if self.writer is not None and not self.writer.is_closing():
            with contextlib.suppress(OSError):
                self.writer.write_eof()
        self._heard_all = True
        if self._said_all:
            self.chan.close()
        return True  # half-open: the other side may have much to say
