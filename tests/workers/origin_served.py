"""An origin of jobs' ports and a hostile server behind it, in this process, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client

from workers.access.proxy import addresses, admissions
from workers.access.proxy.connecting import Open
from workers.access.proxy.models import PublishedPort
from workers.access.proxy.origin import Origin

HOSTILE = {
    "Clear-Site-Data": '"*"',
    "Service-Worker-Allowed": "/",
    "Strict-Transport-Security": "max-age=1",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Credentials": "true",
    "Alt-Svc": 'h2="evil:443"',
    "NEL": "{}",
    "Report-To": "{}",
}


@dataclass
class JobServer:
    """What a job's program heard, and what it says."""

    heard: list[Any] = field(default_factory=list)  # (method, raw path, headers, body)
    said: dict[str, str] = field(default_factory=dict)  # path → where it redirects
    cookies: list[str] = field(default_factory=list)  # Set-Cookie of each answer
    sockets: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._socket(request)
        if request.path.endswith("/stream"):
            return await self._stream(request)
        if request.path.endswith("/breaks"):
            response = web.StreamResponse(headers={"Content-Length": "100"})
            await response.prepare(request)
            await response.write(b"half")
            request.transport.abort()
            return response
        body = await request.read()
        self.heard.append((request.method, request.raw_path, request.headers.copy(), len(body)))
        if request.path.endswith("/large"):
            return web.Response(body=bytes(32 << 20), headers={"Accept-Ranges": "bytes"})
        if request.path in self.said:
            return web.Response(status=302, headers={"Location": self.said[request.path]})
        if request.path.endswith("/raw"):
            return await self._raw(request)
        response = web.Response(text="inside", headers=HOSTILE)
        for cookie in self.cookies:
            response.headers.add("Set-Cookie", cookie)
        return response

    async def _raw(self, request: web.Request) -> web.StreamResponse:
        """An answer written by hand: a file name in UTF-8, a header in Latin-1, and a part of a file."""
        transport = request.transport
        transport.write(
            b"HTTP/1.1 206 Partial Content\r\nContent-Disposition: attachment; filename=\xe5\x9b\xbe.png\r\n"
            b"X-Old: caf\xe9\r\nContent-Range: bytes 0-1/4\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab"
        )
        transport.close()
        return web.StreamResponse()

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Events for as long as somebody listens."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number in range(10_000):
            await response.write(b"data: %d\n\n" % number)
            await asyncio.sleep(0.05)
        return response

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        """Says everything back."""
        self.heard.append((request.method, request.raw_path, request.headers.copy(), 0))
        socket = web.WebSocketResponse(protocols=["v1.kernel"], max_msg_size=64 << 20)
        await socket.prepare(request)
        self.sockets += 1
        try:
            async for message in socket:
                if message.data == "end":
                    await socket.close(code=4001)
                elif message.type == aiohttp.WSMsgType.TEXT:
                    await socket.send_str(message.data)
                else:
                    await socket.send_bytes(message.data)
        finally:
            self.sockets -= 1
        return socket


@dataclass
class Served:
    """The origin at work: `url` is its address, `client` a browser without cookies of its own accord."""

    url: str
    job: JobServer
    client: aiohttp.ClientSession
    origin: Origin

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    async def enter(self, row: PublishedPort, key: str, **user: Any) -> str:
        """Open a port as a browser that is signed in under a session's key; returns the cookie it got."""
        opened = await sync_to_async(ticket)(row, key)
        path = opened.partition("//")[2].partition("/")[2]
        async with self.client.get(f"{self.url}/{path}", headers=signed_in(key), allow_redirects=False) as answer:
            assert answer.status == 303, await answer.text()
            return answer.headers["Set-Cookie"].partition(";")[0]


def ticket(row: PublishedPort, key: str) -> str:
    """An address with a ticket, for the person of a session."""
    user = admissions.person_of_session(key)
    return admissions.issue(row, user=user, host="127.0.0.1", secure=False, session_key=key).url


def session_of(user: Any) -> str:
    """Sign somebody in; returns the session's key."""
    client = Client()
    client.force_login(user)
    return client.session.session_key


def signed_in(key: str) -> dict[str, str]:
    """The cookie that a browser holds for the platform."""
    return {"Cookie": f"{settings.SESSION_COOKIE_NAME}={key}"}


def sign_out(key: str) -> None:
    """End a session."""
    SessionStore(session_key=key).delete()


@asynccontextmanager
async def serving(way: Open | None = None) -> AsyncIterator[Served]:
    """Both servers, while the block lasts. `way`: how jobs are reached; None leads to the server in this process."""
    job = JobServer()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", job.answer)
    inner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, max_field_size=32768)
    await inner.setup()
    site = web.TCPSite(inner, "127.0.0.1", 0)
    await site.start()
    inside = inner.addresses[0][1]

    async def opening(grant: Any) -> Any:
        return await asyncio.open_connection("127.0.0.1", inside)

    origin = Origin(way or opening)
    outer = origin.runner()
    await outer.setup()
    await web.TCPSite(outer, "127.0.0.1", 0).start()
    client = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), connector=aiohttp.TCPConnector(limit=0))
    try:
        yield Served(f"http://127.0.0.1:{outer.addresses[0][1]}", job, client, origin)
    finally:
        await client.close()
        await outer.cleanup()
        await inner.cleanup()


__all__ = ["HOSTILE", "Served", "addresses", "serving", "session_of", "sign_out", "signed_in", "ticket"]
