"""One SSH connection: who it is, to which job, and what it may open there."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Any

import asyncssh
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED, OPEN_CONNECT_FAILED, OPEN_RESOURCE_SHORTAGE
from django.utils import translation
from django.utils.translation import gettext as _

from aiplatform.lib import rates
from workers.access.ssh import access, sessions
from workers.access.ssh.gateway.bridge import Forward
from workers.access.ssh.gateway.hub import Hub, cut_off, moment, on_database
from workers.access.ssh.gateway.listening import JobListener
from workers.access.ssh.gateway.session import Session
from workers.access.ssh.models import SshSession
from workers.core.models import Job
from workers.execution.exec import channels

HERE = {"localhost", "127.0.0.1", "::1", "0.0.0.0", ""}  # noqa: S104 - compared, not bound
MAX_ATTEMPTS, MAX_CHANNELS, MAX_LISTENERS = 20, 64, 16
SHA1_SIGNATURES = frozenset((b"ssh-rsa",))
REFUSALS_PER_MINUTE = 20  # of one address, in the audit trail


class Gateway(asyncssh.SSHServer):
    """One connection; it belongs to one job, or to a person who only jumps from here."""

    connection: asyncssh.SSHServerConnection

    def __init__(self, hub: Hub, options: asyncssh.SSHServerConnectionOptions, *, behind: str = "") -> None:
        self.hub, self.options = hub, options
        self.address = behind  # of whoever came by a jump
        self.ends, self.name, self.row = "", "", None
        self.channels, self.opening, self.listeners, self.forwarded, self.tries = 0, 0, 0, 0, 0
        self.fingerprints: list[str] = []
        self.admission: access.Admission | None = None
        self._heard, self._told = 0.0, 0.0
        self._end = ""
        self._is_stranger = False
        self._gone = False
        self._begun: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    # --- coming and going

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connection = conn
        ends = [conn.get_extra_info(which) or ("jump", 0) for which in ("peername", "sockname")]
        ends = [end if isinstance(end, tuple) else ("jump", 0) for end in ends]
        self.address = self.address or str(ends[0][0])
        self.ends = " ".join(f"{end[0]} {end[1]}" for end in ends)
        if not self.hub.has_room(self.address):
            conn.abort()
            return
        self.hub.connections.add(self)
        self.hub.strangers[self.address] += 1
        self._is_stranger = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        self.hub.connections.discard(self)
        self._is_known()
        if not self._begun.done():
            self._begun.set_result(False)
        if self.row is not None:
            self.hub.open.pop(self.row, None)
            why = self._end or SshSession.End.LEFT
            self.hub.run_later(on_database(sessions.end, self.row, str(why), self.last_activity(repeat=True)))
        elif self.admission is None and self.tries:
            self.hub.run_later(on_database(self._write_refusal))

    def leave(self, why: str) -> None:
        """Cut the connection for a reason of `SshSession.End`."""
        self._end = self._end or why
        with translation.override(self.language):
            text = str(SshSession.End(why).label)
        cut_off(self.connection, text)

    @property
    def language(self) -> str | None:
        return self.admission.language if self.admission else None

    @property
    def person(self) -> int:
        """Who has signed in; 0 before."""
        return 0 if self._is_stranger or self.admission is None else self.admission.user

    def note_activity(self) -> None:
        """Note that the user typed, or a program printed."""
        self._heard = time.time()

    def last_activity(self, *, repeat: bool = False) -> datetime | None:
        """Time of the last activity; None where it was reported already, or there was none."""
        if not self._heard or (self._heard == self._told and not repeat):
            return None
        self._told = self._heard
        return moment(self._heard)

    def _is_known(self) -> None:
        if self._is_stranger:
            self._is_stranger = False
            self.hub.strangers[self.address] -= 1
            if not self.hub.strangers[self.address]:
                del self.hub.strangers[self.address]

    def _write_refusal(self) -> None:
        if rates.count(f"ssh-refused:{self.address}", within_s=60) <= REFUSALS_PER_MINUTE:
            sessions.record_refusal(self.name, address=self.address, fingerprints=self.fingerprints)

    # --- signing in

    def begin_auth(self, username: str) -> bool:
        return True  # nobody comes in without a proof

    def public_key_auth_supported(self) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def _try(self, username: str) -> bool:
        """Count a try; what an earlier one was admitted to is over."""
        self.admission, self.name = None, username
        self.tries += 1
        if self.tries > MAX_ATTEMPTS:
            cut_off(self.connection, "too many tries")
        return self.tries <= MAX_ATTEMPTS

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Whether this key may enter as this login name; the client still has to prove that it has the key."""
        if not self._try(username):
            return False
        fingerprint = key.get_fingerprint()
        if fingerprint not in self.fingerprints:
            self.fingerprints.append(fingerprint)
        # what is offered is only what the client is told of: asyncssh takes any signature that the key can make
        key.all_sig_algorithms = key.all_sig_algorithms - SHA1_SIGNATURES
        self.admission = await on_database(access.by_key, username, fingerprint)
        return self.admission is not None

    async def validate_password(self, username: str, password: str) -> bool:
        """Whether this is a one-time password of the job, which is used up by it."""
        if not self._try(username):
            return False
        self.admission = await on_database(access.by_password, username, password, address=self.address)
        return self.admission is not None

    async def auth_completed(self) -> None:
        """Write the sign-in down; without that nothing is opened."""
        self._is_known()
        admission = self.admission
        if admission is None or self.connection.get_extra_info("username") != self.name:
            self.connection.abort()
            return
        if self.hub.is_full_for(admission.user):
            self._hang_up_full()
            return
        client = str(self.connection.get_extra_info("client_version") or "").removeprefix("SSH-2.0-")
        begin = {"address": self.address, "client": client, "gateway": self.hub.name}
        row = await on_database(sessions.start, admission, **begin)
        if row is None and admission.job is not None:
            self._hang_up_full()
            return
        if row is not None:
            self.row = row.pk
            if self._begun.done():  # it left meanwhile
                await on_database(sessions.end, row.pk, str(SshSession.End.LEFT), None)
                return
            self.hub.open[row.pk] = self
        self._begun.set_result(True)

    def _hang_up_full(self) -> None:
        with translation.override(self.language):
            cut_off(self.connection, _("Too many SSH sessions are open. End one on the page of its job."))

    # --- what it opens

    def session_requested(self) -> Session:
        self._check_room()
        return Session(self)

    def connection_requested(self, host: str, port: int, orig_host: str, orig_port: int) -> Awaitable[Forward]:
        self._check_room()
        if self.admission is not None and self.admission.job is None:
            return self._opened(self._jump)
        if host not in HERE:
            raise asyncssh.ChannelOpenError(OPEN_ADMINISTRATIVELY_PROHIBITED, "only ports of the job itself")
        return self._opened(partial(self._forward, {"act": "port", "port": port}))

    def unix_connection_requested(self, path: str) -> Awaitable[Forward]:
        self._check_room()
        return self._opened(partial(self._forward, {"act": "unix", "path": path}))

    async def server_requested(self, listen_host: str, listen_port: int) -> asyncssh.SSHListener | bool:
        """`-R`: listen on the job's own loopback, nowhere else."""
        if listen_host not in HERE or self.listeners >= MAX_LISTENERS:
            return False
        try:
            answer, reader, writer = await self.open_action({"act": "listen", "port": listen_port})
        except (OSError, ValueError, channels.ChannelRefused):
            return False
        port, key = answer.get("port"), answer.get("key")
        if self._gone or not (isinstance(port, int) and 0 < port < 65536 and isinstance(key, str)):
            writer.close()
            return False
        return JobListener(self, listen_host, listen_port, port, key, reader, writer)

    def has_room(self) -> bool:
        """Whether one more channel may be opened; those that wait for the job's answer count."""
        return self.channels + self.opening < MAX_CHANNELS

    def _check_room(self) -> None:
        if not self.has_room():
            raise asyncssh.ChannelOpenError(OPEN_RESOURCE_SHORTAGE, "too many channels of one connection")

    def _opened(self, opening: Callable[[], Awaitable[Forward]]) -> Awaitable[Forward]:
        """Open a channel that takes a place from now on, before anybody looks after it."""
        self.opening += 1

        async def run() -> Forward:
            try:
                return await opening()
            finally:
                self.opening -= 1

        return run()

    async def channel(self, request: dict[str, Any]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Start an action of the exec server of the job; see `open_with_reply`."""
        _answer, reader, writer = await self.open_action(request)
        return reader, writer

    async def open_action(
        self, request: dict[str, Any]
    ) -> tuple[dict[str, Any], asyncio.StreamReader, asyncio.StreamWriter]:
        """Start an action of the job's exec server; return its answer too.

        Raises:
            ChannelRefused: the job does not run, is paused, or said no.
            OSError: the connection is over, or only jumps.
        """
        if not await asyncio.shield(self._begun):
            raise ConnectionAbortedError
        with translation.override(self.language):  # of this task alone
            if self.admission is None or self.admission.job is None:
                raise OSError(_("Sign in with the number of a job, for example: ssh job-12@this-host"))
            route = await on_database(_way_to, self.admission.job, self.admission.rank)
            return await channels.open_with_reply(route, request)

    def why(self, exc: Exception) -> str:
        """A sentence of what went wrong, in the person's language."""
        with translation.override(self.language):
            text = str(exc) or _("The job has ended, or its node is unreachable.")
        return f"{self.name}: {text}"

    async def _forward(self, request: dict[str, Any]) -> Forward:
        try:
            return Forward(self, *await self.channel(request))
        except (OSError, ValueError, channels.ChannelRefused) as exc:
            raise asyncssh.ChannelOpenError(OPEN_CONNECT_FAILED, self.why(exc)) from None

    async def _jump(self) -> Forward:
        """The other side of a jump is this gateway again: the sign-in to the job is judged as any other."""
        if not await asyncio.shield(self._begun):
            raise asyncssh.ChannelOpenError(OPEN_CONNECT_FAILED, "not signed in")
        local, remote = socket.socketpair()

        def inner() -> Gateway:
            return Gateway(self.hub, self.options, behind=self.address)

        async def serve() -> None:  # asyncssh's own call is no coroutine that a task would take
            await asyncssh.run_server(remote, options=self.options, server_factory=inner)

        self.hub.run_later(serve())
        return Forward(self, *await asyncio.open_unix_connection(sock=local))


def _way_to(number: int, rank: int) -> Any:
    return channels.way_to(Job.objects.get(pk=number), rank)
