"""Ways between the ranks of a job on several machines: what launchers such as mpirun start programs on the others by.

Each rank sees a folder of its own with a program, `aip-rsh`, and a socket behind which this machine's `exec_relay`
answers. Whose folder it is says who asks: a job can name a rank of its own attempt and nothing else, whatever it sends.

    rank  → relay   {"to": "10.0.0.2", "command": text or null, "pty": {…} or null}
    relay → rank    {"ok": true}, or {"error": "…"} and the end

Frames of a session follow, see workers/supervisor/inside/sessions.py.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from channels.db import database_sync_to_async
from django.db import Error
from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError
from workers.core.models import Allocation, Attempt
from workers.execution.exec import channels, inside_programs, socket_paths
from workers.execution.exec.channels import ChannelRefused, Way
from workers.execution.exec.relay import Streams, close, copy_both_ways
from workers.supervisor import exec_socket

log = logging.getLogger(__name__)

PROGRAM = "aip-rsh"
PASSABLE = 0o711  # jobs of all people pass through to their own
MAX_BYTES = 131072  # bytes of a request: the kernel takes no longer word on a command line
REQUEST_S = 10.0
BEGIN_S = 60.0  # for another rank to begin: it may have been placed a moment ago
TRY_S = 0.5
LOOK_S, SWEEP_S = 0.5, 60.0
MAX_SESSIONS = 256  # sessions of one rank at a time

Rank = tuple[int, int, int]


class NoPeer(DomainError, code="no_peer"):
    """No other rank of the job is meant."""


def make(own: Rank, uid: int, *, is_open: bool = False) -> Path:
    """Make the folder of a rank with the program in it, and return it; the relay brings the socket.

    Args:
        uid: user and group of the job, who alone may enter; 0 is the platform's own.
        is_open: on a way that the users of jobs can go themselves.

    Raises:
        OSError: somebody else made the folder that all of them lie in.
    """
    folder = socket_paths.peers_of(*own, is_open=is_open)
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    exec_socket.own_folder(str(folder.parent), PASSABLE)
    folder.parent.chmod(PASSABLE)
    folder.mkdir(exist_ok=True)
    if uid:
        os.chown(folder, -1, uid)
    folder.chmod(0o750)
    inside_programs.write_program(folder, PROGRAM, "rank_shell.py", str(folder / socket_paths.PEERS_SOCKET))
    return folder


def way_from(own: Rank, to: str) -> Way:
    """Return the route from a rank to another one of the same attempt, by the rows.

    Args:
        to: its number, or the address or name of its machine.

    Raises:
        NoPeer: no rank of this attempt is meant, or the attempt is over.
        ChannelRefused: it cannot be reached now.
    """
    job_id, number, rank = own
    attempt = Attempt.objects.select_related("job").filter(job=job_id, number=number, ended_at=None).first()
    if attempt is None or attempt.job.attempt_number != number:
        raise NoPeer(_("This rank of the job has ended."))
    held = Allocation.objects.filter(attempt=attempt, released_at=None).select_related("node").order_by("rank", "pk")
    meant = [row.rank for row in held if to in (str(row.rank), row.node.address, row.node.name)]
    if not meant:
        machines = ", ".join(dict.fromkeys(f"{row.rank} ({row.node.address})" for row in held))
        raise NoPeer(_("This node does not run the job. Nodes of the job: %(machines)s.") % {"machines": machines})
    other = next((row for row in meant if row != rank), rank)  # several ranks of a test may share one address
    return channels.way_to(attempt.job, other)


class Peers:
    """The sockets of all ranks on this machine."""

    def __init__(self) -> None:
        self.servers: dict[Path, asyncio.Server] = {}
        self._open: dict[Rank, int] = {}

    async def maintain(self) -> None:
        """Serve a socket for each rank that starts, and remove those of attempts that are over, forever."""
        swept = 0.0
        loop = asyncio.get_running_loop()
        while True:
            try:
                await self.update()
            except OSError:  # nothing that lies in these folders may end the way of all ranks
                log.exception("the folders of ranks could not be looked at")
            if loop.time() - swept >= SWEEP_S:
                swept = loop.time()
                with suppress(Error):  # the database is away: later
                    await database_sync_to_async(sweep)()
            await asyncio.sleep(LOOK_S)

    async def update(self) -> None:
        """Listen for the ranks whose folders exist, and for no others."""
        present = _folders()
        for folder in set(self.servers) - set(present):
            self.servers.pop(folder).close()
        for folder, own in present.items():
            if folder not in self.servers:
                with suppress(OSError):  # gone meanwhile
                    self.servers[folder] = await self._listen(own, folder / socket_paths.PEERS_SOCKET)

    def end(self) -> None:
        """Close every socket; the next process makes them again in the same folders."""
        for server in self.servers.values():
            server.close()
        self.servers.clear()

    async def _listen(self, own: Rank, path: Path) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(own, reader, writer)

        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(serve, path, limit=MAX_BYTES, backlog=MAX_SESSIONS)
        path.chmod(0o666)
        return server

    async def _serve(self, own: Rank, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a rank and carry its session."""
        if self._open.get(own, 0) >= MAX_SESSIONS:
            writer.transport.abort()
            return
        self._open[own] = self._open.get(own, 0) + 1
        try:
            inner = await self._open_stream(own, reader, writer)
            if inner:
                await copy_both_ways((reader, writer), inner)
        except (OSError, ValueError):
            writer.transport.abort()
        finally:
            self._open[own] -= 1

    async def _open_stream(
        self, own: Rank, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Streams | None:
        """Open what a rank requests; None where it is refused, with the reason sent to it."""
        async with asyncio.timeout(REQUEST_S):
            request = read(await reader.readline())
        try:
            inner = await open_session(own, request)
        except (DomainError, Error) as exc:
            why = str(exc) if isinstance(exc, DomainError) else _("The database of the platform does not respond.")
            log.info("job=%s attempt=%s rank=%s no way to %r: %s", *own, request["to"], why)
            writer.write(json.dumps({"error": why}).encode() + b"\n")
            await close(writer)
            return None
        writer.write(b'{"ok": true}\n')
        return inner


def read(line: bytes) -> dict[str, Any]:
    """Parse a rank's request, reduced to the fields it may contain.

    Raises:
        ValueError: it cannot be read.
    """
    try:
        request = json.loads(line)
    except RecursionError as exc:
        raise ValueError("no request") from exc
    if not line.endswith(b"\n") or not isinstance(request, dict) or not isinstance(request.get("to"), str):
        raise ValueError("no request")
    command, pty = request.get("command"), request.get("pty")
    if not (command is None or isinstance(command, str)) or not (pty is None or isinstance(pty, dict)):
        raise ValueError("no request")
    return {"to": request["to"], "command": command, "pty": pty}


async def open_session(own: Rank, request: dict[str, Any]) -> Streams:
    """Open a session in another rank; waits for one that has not started yet.

    Raises:
        NoPeer, ChannelRefused: nobody is reached.
    """
    session = {"act": "session", "command": request["command"], "pty": request["pty"], "env": {}}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BEGIN_S
    while True:
        route = await database_sync_to_async(way_from)(own, request["to"])
        try:
            return await channels.open_channel(route, session)
        except ChannelRefused as exc:
            if exc.code != "unreachable" or loop.time() > deadline:
                raise
        await asyncio.sleep(TRY_S)


def sweep() -> None:
    """Take away the folders of attempts that are over."""
    present = _folders()
    rows = Attempt.objects.filter(job__in={own[0] for own in present.values()}, ended_at=None)
    live = set(rows.values_list("job_id", "number"))
    for folder, own in present.items():
        if own[:2] not in live:
            shutil.rmtree(folder, ignore_errors=True)


def _folders() -> dict[Path, Rank]:
    return {path: own for top in {socket_paths.peers(), socket_paths.open_peers()} for own, path in _below(top)}


def _below(top: Path) -> Iterator[tuple[Rank, Path]]:
    try:
        paths = list(top.iterdir()) if exec_socket.is_own(str(top), PASSABLE) else []
    except FileNotFoundError:
        return
    for path in paths:
        if own := socket_paths.rank_of(path.name):
            yield own, path
