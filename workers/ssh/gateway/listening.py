"""`ssh -R`: a port on the job's own loopback, whose connections come out at the client."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import asyncssh

from workers.exec.channels import ChannelRefused
from workers.ssh.gateway.bridge import Forward

if TYPE_CHECKING:
    from workers.ssh.gateway.connection import Gateway


class JobListener(asyncssh.SSHListener):
    """A listening port inside a job. It ends with the connection, with the client's word, or with the job."""

    def __init__(
        self, gateway: Gateway, host: str, asked: int, answer: dict[str, Any],
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
    ) -> None:  # fmt: skip
        super().__init__()
        self.gateway, self.host = gateway, host
        self.port, self.key = int(answer["port"]), str(answer["key"])
        self.asked = asked or self.port  # what the client calls it
        self.reader, self.writer = reader, writer
        self.gateway.listeners += 1
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
        """Carry each connection that the job's server tells of."""
        while line := await self.reader.readline():
            told = json.loads(line)
            self.gateway.hub.later(self._carry(int(told["id"]), told.get("peer") or ["127.0.0.1", 0]))

    async def _carry(self, number: int, peer: list[Any]) -> None:
        if not self.gateway.has_room():
            return
        try:
            reader, writer = await self.gateway.channel({"act": "accept", "key": self.key, "id": number})
        except (OSError, ValueError, ChannelRefused):
            return
        try:
            await self.gateway.connection.create_connection(
                lambda: Forward(self.gateway, reader, writer), self.host, self.asked, str(peer[0]), int(peer[1])
            )
        except (OSError, asyncssh.Error):  # nobody listens at the client
            writer.close()
