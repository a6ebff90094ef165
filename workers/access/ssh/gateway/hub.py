"""What all connections of a gateway share: how many there are, what is written down of them, and who is cut."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import asyncssh
from channels.db import database_sync_to_async
from django.db import Error

from workers.access.ssh import passwords, sessions
from workers.access.ssh.models import SshSession

if TYPE_CHECKING:
    from workers.access.ssh.gateway.connection import Gateway

log = logging.getLogger(__name__)

MAX_CONNECTIONS, MAX_UNAUTHENTICATED, MAX_UNAUTHENTICATED_PER_ADDRESS = 512, 128, 48
LOOK_S, WRITE_S, SWEEP_S, CLOSE_S = 2.0, 10.0, 600.0, 4.0
BUSY_BYTES = 2048
"""Sent through forwarded ports within `WRITE_S` by who works; an editor that is left open sends less."""


def on_database(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Ask the database in its own thread."""
    return database_sync_to_async(call)(*args, **kwargs)


class Hub:
    """The connections of one gateway."""

    def __init__(self) -> None:
        self.name = uuid.uuid4().hex
        self.connections: set[Gateway] = set()
        self.strangers: Counter[str] = Counter()  # those who have not signed in, by address
        self.open: dict[int, Gateway] = {}  # by the number of their session
        self._tasks: set[asyncio.Task[Any]] = set()

    def has_room(self, address: str) -> bool:
        """Whether one more who has not signed in may come from this address."""
        of_one, of_all = self.strangers[address], self.strangers.total()
        return (
            len(self.connections) < MAX_CONNECTIONS
            and of_all < MAX_UNAUTHENTICATED
            and of_one < MAX_UNAUTHENTICATED_PER_ADDRESS
        )

    def is_full_for(self, person: int) -> bool:
        """Whether a user has the maximum of connections, jumps included."""
        count = sum(connection.person == person for connection in self.connections)
        return count > sessions.MAX_SESSIONS_PER_USER

    def run_later(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something in the background; a failure is logged."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (exc := task.exception()):
            log.warning("gateway=%s not written down: %s", self.name, exc)

    async def settle(self) -> None:
        """Wait for what is still being written down."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def watch(self) -> None:
        """Maintain sessions until cancelled. A database that does not answer ends no session."""
        written = swept = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.end_revoked()
                if time.monotonic() - written >= WRITE_S:
                    written = time.monotonic()
                    await self.write()
                if time.monotonic() - swept >= SWEEP_S:
                    swept = time.monotonic()
                    await on_database(sessions.sweep, self.name)
                    await on_database(passwords.forget_old)
            except Error as exc:
                log.warning("gateway=%s the database does not answer: %s", self.name, exc)

    async def end_revoked(self) -> None:
        """End sessions whose end was requested, whose user may no longer enter, and whose job has ended."""
        if not self.open:
            return
        for number, why in (await on_database(sessions.list_revoked, list(self.open))).items():
            if connection := self.open.get(number):
                connection.leave(why)

    async def write(self) -> None:
        """Record that the sessions are alive, and their last activity."""
        activity = {}
        for number, connection in self.open.items():
            if connection.forwarded >= BUSY_BYTES:
                connection.note_activity()
            connection.forwarded = 0
            if (moment := connection.last_activity()) is not None:
                activity[number] = moment
        if self.open:
            await on_database(sessions.touch, self.name, activity)

    async def close(self) -> None:
        """End all connections, and wait until the rows of their sessions say so."""
        for connection in list(self.connections):
            connection.leave(SshSession.End.GATEWAY_LOST)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                while self.connections:
                    await asyncio.sleep(0.01)
                await self.settle()


def moment(seconds: float) -> datetime:
    """Seconds since the epoch as the time they mean."""
    return datetime.fromtimestamp(seconds, UTC)


def cut_off(connection: asyncssh.SSHServerConnection, text: str) -> None:
    """Tell the client why, and hang up whether it listens or not."""
    connection.disconnect(asyncssh.DISC_BY_APPLICATION, text)
