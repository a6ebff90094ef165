"""Channels into a running job: a port, a socket, a session or a file transfer inside its sandbox.

Requests and responses are defined in workers/supervisor/inside/requests.py. What answers is inside the
job, so no word of it is trusted.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from aiplatform import env
from aiplatform.lib.errors import DomainError
from workers.core import kinds
from workers.core.models import Allocation, Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import JobState
from workers.execution.exec import greeting, socket_paths
from workers.supervisor import handover, records, sandbox

TIMEOUT_S = 10.0
_MAX_BYTES = 65536  # bytes of an answer
_UNREADABLE = (OSError, ValueError, RecursionError)  # nobody there, too late, not what an answer looks like

_SENTENCES = {
    "not_running": _("The job is not running. Start it first."),
    "paused": _("The job is paused. Continue it first."),
    "no_exec_server": _("Terminals, ports and files of this job are not accessible from outside."),
    "no_python": _(
        "The container image of this job has no python3 of version %(why)s or later, so its terminals, ports "
        "and files are not available. Choose another image."
    ),
    "late": _(
        "The container of this job did not start its terminal and file services in time. Stop the job and "
        "restore it to use them."
    ),
    "unreachable": _("The job does not respond. It may be paused, or its node unreachable. Try again in a moment."),
    "refused": _("The job rejected the request: %(why)s."),
}


class ChannelRefused(DomainError):
    """No channel was opened. `code` says which of seven reasons it was."""

    def __init__(self, code: str, why: str = "") -> None:
        super().__init__(str(_SENTENCES[code]) % {"why": why}, **({"why": why} if why else {}))
        self.code = code  # type: ignore[misc]  # of this refusal, not of all of its class


@dataclass(frozen=True)
class Way:
    """How one rank of a running attempt is reached: its socket on this machine, or the relay of another."""

    path: Path
    relay: tuple[str, int] | None = None
    target: tuple[int, int, int] = (0, 0, 0)  # job, attempt and rank, for the relay


def way_to(job: Job, rank: int = 0) -> Way:
    """Return the way to a rank of a running job, by its rows.

    Raises:
        ChannelRefused: not_running, paused, no_exec_server, no_python, late.
    """
    if job.state == JobState.PAUSED:
        raise ChannelRefused("paused")
    attempt = Attempt.objects.filter(job=job, number=job.attempt_number, ended_at=None).first()
    held = Allocation.objects.filter(attempt=attempt, rank=rank, released_at=None).select_related("node").first()
    if attempt is None or held is None or not job.is_live:
        raise ChannelRefused("not_running")
    if not kinds.has_exec_server(job.kind):
        raise ChannelRefused("no_exec_server")
    if (attempt.sandbox_tier or 0) >= sandbox.CONTAINER and (why := _closed(job, rank)):
        raise why
    away = held.node.name != settings.NODE
    target = (job.pk, attempt.number, rank)
    return Way(socket_paths.for_rank(*target), (held.node.address, env.EXEC_PORT) if away else None, target)


def _closed(job: Job, rank: int) -> ChannelRefused | None:
    """Why the job's container has no exec server; None while it may have one."""
    record = records.read(RunDir.for_attempt(job.pk, job.attempt_number).of_rank(rank) / handover.WAYS)
    if record is None:
        return None
    if record.get("why") == handover.NO_PYTHON:
        return ChannelRefused("no_python", ".".join(map(str, handover.OLDEST)))
    return ChannelRefused("late")


async def open_channel(
    route: Way, request: Mapping[str, Any], patience_s: float = TIMEOUT_S
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a channel; what follows the reply is left to be read.

    Raises:
        ChannelRefused: unreachable, refused.
    """
    _answer, reader, writer = await open_with_reply(route, request, patience_s)
    return reader, writer


async def open_with_reply(
    route: Way, request: Mapping[str, Any], patience_s: float = TIMEOUT_S
) -> tuple[dict[str, Any], asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a channel like `open_channel` and return the reply too: for example the address where it listens.

    Raises:
        ChannelRefused: unreachable, refused.
    """
    try:
        async with asyncio.timeout(patience_s):
            reader, writer = await _reach(route)
            opened = False
            try:
                await _greet(route, reader, writer)
                writer.write(_line(request))
                await writer.drain()
                answer = _check(await reader.readline())
                opened = True
            finally:
                if not opened:
                    writer.transport.abort()
            return answer, reader, writer
    except _UNREADABLE as exc:
        raise ChannelRefused("unreachable") from exc


async def _reach(route: Way) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if route.relay:
        return await asyncio.open_connection(*route.relay, limit=_MAX_BYTES)
    return await asyncio.open_unix_connection(str(route.path), limit=_MAX_BYTES)


async def _greet(route: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Prove to a relay that we belong to its platform, and check that it belongs to ours."""
    if not route.relay:
        return
    relay_greeting, challenge = greeting.read(await reader.readline()), greeting.challenge()
    writer.write(greeting.request_line(relay_greeting, route.target, challenge))
    await writer.drain()
    greeting.check(greeting.read(await reader.readline()), relay_greeting, challenge, route.target)


def connect(route: Way, request: Mapping[str, Any], patience_s: float = TIMEOUT_S) -> socket.socket:
    """Open a channel and return its socket, blocking, without a timeout.

    Machines know each other by IPv4 addresses or names.

    Raises:
        ChannelRefused: unreachable, refused.
    """
    channel, opened = socket.socket(socket.AF_INET if route.relay else socket.AF_UNIX), False
    try:
        deadline = time.monotonic() + patience_s
        channel.settimeout(patience_s)
        channel.connect(route.relay or str(route.path))

        def line() -> bytes:
            return _read_line(channel, lambda: deadline - time.monotonic())

        if route.relay:
            relay_greeting, challenge = greeting.read(line()), greeting.challenge()
            channel.sendall(greeting.request_line(relay_greeting, route.target, challenge))
            greeting.check(greeting.read(line()), relay_greeting, challenge, route.target)
        channel.sendall(_line(request))
        _check(line())
        channel.settimeout(None)
        opened = True
    except _UNREADABLE as exc:
        raise ChannelRefused("unreachable") from exc
    finally:
        if not opened:
            channel.close()
    return channel


def _read_line(channel: socket.socket, left_s: Callable[[], float]) -> bytes:
    """Read one line and not a byte of what follows it."""
    line = b""
    while not line.endswith(b"\n") and len(line) < _MAX_BYTES:
        if left_s() <= 0:
            raise TimeoutError
        channel.settimeout(left_s())
        data = channel.recv(4096, socket.MSG_PEEK)
        if not data:
            break
        line += channel.recv(data.find(b"\n") + 1 or len(data))
    return line


def _line(request: Mapping[str, Any]) -> bytes:
    return json.dumps(request).encode() + b"\n"


def _check(line: bytes) -> dict[str, Any]:
    """The answer to a request.

    Raises:
        ChannelRefused: it is a refusal, or none that can be read.
    """
    if not line.endswith(b"\n"):
        raise ChannelRefused("unreachable")
    answer = json.loads(line)
    if not isinstance(answer, dict) or not answer.get("ok"):
        why = answer.get("error") if isinstance(answer, dict) else ""
        raise ChannelRefused("refused", str(why or "–")[:200].rstrip("."))
    return answer
