"""Connections to the servers of jobs: through each job's exec server, so that they need no network of their own."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.client_proto import ResponseHandler
from asgiref.sync import sync_to_async

from workers.access.proxy.admissions import Grant
from workers.access.proxy.refusals import CHANNELS, Refused
from workers.core.models import Job
from workers.execution.exec import channels

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
#: (what is opened) → the bytes of a new connection to it.
Open = Callable[[Grant], Awaitable[Streams]]

TIMEOUT_S = 10.0
#: Connections to one port; the exec server has room for these and some more.
MAX_CONNECTIONS = 112
SESSIONS = 200
KEEP_ALIVE_S = 4.0  # servers close what is quiet after five seconds


async def through_exec_server(grant: Grant) -> Streams:
    """Open a connection to a port or a socket of a job.

    Raises:
        ChannelRefused: the job is gone or paused, or nothing listens there.
    """
    route = await sync_to_async(_find_route)(grant.job_id)
    request: dict[str, Any] = (
        {"act": "port", "port": grant.port} if grant.port else {"act": "unix", "path": grant.socket}
    )
    return await channels.open_channel(route, request, TIMEOUT_S)


def _find_route(job: int) -> channels.Way:
    return channels.way_to(Job.objects.get(pk=job))


class NoWay(aiohttp.ClientConnectorError):
    """There is no way into the job; `code` is the channel's."""

    code = "unreachable"


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Say in a refusal what keeps a request from a job's server.

    Raises:
        Refused: in place of what aiohttp raises.
    """
    try:
        yield
    except NoWay as exc:
        raise Refused(CHANNELS.get(exc.code, "unreachable")) from exc
    except aiohttp.ConnectionTimeoutError as exc:  # all connections are taken
        raise Refused("too_busy") from exc
    except (aiohttp.ClientError, TimeoutError) as exc:
        raise Refused("broken_off") from exc


class Connector(aiohttp.BaseConnector):
    """Connections of aiohttp to one port of one attempt of a job."""

    def __init__(self, grant: Grant, opening: Open) -> None:
        super().__init__(limit=MAX_CONNECTIONS, keepalive_timeout=KEEP_ALIVE_S)
        self._grant, self._opening = grant, opening
        self._writers: WeakKeyDictionary[ResponseHandler, asyncio.StreamWriter] = WeakKeyDictionary()

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> ResponseHandler:
        try:
            _reader, writer = await self._opening(self._grant)
        except channels.ChannelRefused as exc:
            refused = NoWay(req.connection_key, OSError(111, exc.message))
            refused.code = exc.code
            raise refused from exc
        protocol = self._factory()
        transport = cast("asyncio.Transport", writer.transport)
        transport.set_protocol(protocol)  # what the job's server said before it was asked is dropped
        transport.resume_reading()
        protocol.connection_made(transport)
        self._writers[protocol] = writer  # one that is forgotten closes the connection
        return protocol


class Sessions:
    """aiohttp's sessions, one for each port of each attempt; those used longest ago are closed."""

    def __init__(self, opening: Open) -> None:
        self._opening = opening
        self._open: OrderedDict[tuple[int, int], aiohttp.ClientSession] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def get(self, grant: Grant) -> aiohttp.ClientSession:
        """The session for a port, created if missing."""
        key = (grant.port_id, grant.attempt)
        session = self._open.pop(key, None)
        if session is None or session.closed:
            session = aiohttp.ClientSession(
                connector=Connector(grant, self._opening),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("accept", "accept-encoding", "user-agent", "content-type"),
                timeout=aiohttp.ClientTimeout(total=None, connect=TIMEOUT_S * 2),
            )
        self._open[key] = session
        while len(self._open) > SESSIONS:
            _key, oldest = self._open.popitem(last=False)
            task = asyncio.create_task(oldest.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return session

    async def close(self) -> None:
        """Close all of them."""
        await asyncio.gather(*self._closing, *(session.close() for session in self._open.values()))
        self._open.clear()
