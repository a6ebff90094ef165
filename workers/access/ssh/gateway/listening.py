"""`ssh -R`: a port on the job's own loopback, whose connections come out at the client."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING

import asyncssh

from workers.access.ssh.gateway.bridge import Forward
from workers.execution.exec.channels import ChannelRefused

if TYPE_CHECKING:
    from workers.access.ssh.gateway.connection import Gateway


MAX_OPENING = 16


class JobListener(asyncssh.SSHListener):
    """A listening port inside a job. It ends with the connection, with the client's word, or with the job."""

    def __init__(
        self, gateway: Gateway, host: str, requested_port: int, port: int, key: str,
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
    ) -> None:  # fmt: skip
        super().__init__()
        self.gateway, self.host = gateway, host
        self.port, self.key = port, key
        self.asked = requested_port or self.port  # what the client calls it
        self.reader, self.writer = reader, writer
        self.gateway.listeners += 1
        self._turns = asyncio.Semaphore(MAX_OPENING)
        self._task = asyncio.create_task(self._run())

    def get_port(self) -> int:
        return self.port

    def close(self) -> None:
        if not self.writer.is_closing():
            self.gateway.listeners -= 1
        self._task.cancel()
        self.writer.close()

    async def wait_closed(self) -> None:
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def _run(self) -> None:
        """Carry each connection that the job tells of; its words are not trusted."""
        try:
            while line := await self.reader.readline():
                number = json.loads(line)["id"]
                if not isinstance(number, int):
                    break
                await self._turns.acquire()
                self.gateway.hub.run_later(self._carry(number))
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            pass
        self.close()

    async def _carry(self, number: int) -> None:
        try:
            if self.gateway.has_room():
                await self._open(number)
        finally:
            self._turns.release()

    async def _open(self, number: int) -> None:
        try:
            reader, writer = await self.gateway.channel({"act": "accept", "key": self.key, "id": number})
        except (OSError, ValueError, ChannelRefused):
            return
        try:
            await self.gateway.connection.create_connection(
                lambda: Forward(self.gateway, reader, writer), self.host, self.asked, "127.0.0.1", 0
            )
        except (OSError, asyncssh.Error):  # nobody listens at the client
            writer.close()
