"""Forwards one HTTP request to a job's port and its answer back, streamed both ways.

The platform's cookies and tokens stop here, and so do headers in which a caller speaks for the platform.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

import aiohttp
from asgiref.sync import sync_to_async
from yarl import URL

from aiplatform.lib.pace import TooSlow, paced

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Done = Callable[[int, float, int, int], None]
Admit = Callable[[Scope, str], Awaitable[None]]

PLAIN = "/:@!$&'()*+,;=~-._"  # of RFC 3986, in a path
HOP_BY_HOP = {
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection",
    b"te", b"trailer", b"transfer-encoding", b"upgrade",
}  # fmt: skip
NOT_FORWARDED = {b"cookie", b"authorization", b"host", b"x-csrftoken", b"origin", b"referer", b"expect"}
PLATFORM_HEADERS = (b"x-forwarded-", b"x-aip-", b"forwarded")  # callers do not speak for the platform
NOT_RETURNED = {  # a job does not speak for the platform's address either
    b"set-cookie", b"server", b"date", b"location", b"content-location", b"refresh", b"link", b"alt-svc",
    b"clear-site-data", b"strict-transport-security",
}  # fmt: skip


class NotListening(Exception):
    """Nothing answers at the port yet, or something that does not know the key."""


class BrokenOff(Exception):
    """The job's server ended the exchange."""


class PointsElsewhere(Exception):
    """The job's server redirects to an address that is not its own."""


class CallerGone(Exception):
    """The caller does not wait for the response any more."""


@dataclass(frozen=True)
class Upstream:
    """A port that a job listens on.

    Attributes:
        headers: go along with every request; a key made for one attempt belongs here, so that a stale port never
            reaches another tenant: a server of anybody else does not know it and answers 401.
        on_success: called, off the event loop, after each answer 200.
        on_done: called, on the event loop, after each request: status, seconds, bytes of both ways.
        admit: asked before each request; what it raises ends the call.
        choose: for each request, where it goes; this one is asked where that one does not listen.
        copy: who gets the request too, once it was answered.
        load: counts the requests that are under way there.
        prefix: stands before the path of every request, where several share the port: "/m/3-7".
    """

    host: str
    port: int
    headers: tuple[tuple[str, str], ...] = ()
    on_success: Callable[[], None] | None = None
    on_done: Done | None = None
    admit: Admit | None = None
    choose: Callable[[Scope, str], Upstream] | None = None
    copy: Copy | None = None
    load: Load | None = None
    prefix: str = ""

    def counted(self, on_done: Done, copy: Copy | None = None) -> Upstream:
        """The same, for one request."""
        return replace(self, on_done=on_done, copy=copy, admit=None, choose=None)


@dataclass
class Load:
    """How much one server has to do for this process, and until when it is left alone because it did not listen."""

    under_way: int = 0
    away_until: float = 0.0

    def __enter__(self) -> None:
        self.under_way += 1

    def __exit__(self, *_exc: object) -> None:
        self.under_way -= 1


@dataclass(frozen=True)
class Copy:
    """Another port that gets a copy of a request; its response is dropped.

    Attributes:
        compare: called with the body that was asked with, what the caller got and what the copy got, where both were
            answered 200; on the event loop, and awaited.
    """

    upstream: Upstream
    compare: Callable[[bytes, bytes, bytes], Awaitable[None]]


class Forwarder:
    """Forwards requests; one client session per event loop."""

    def __init__(self) -> None:
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()

    async def forward(self, scope: Scope, receive: Receive, send: Send, upstream: Upstream, path: str) -> None:
        """Send the request on as `path`, hand its answer back as it comes.

        Raises:
            NotListening, BrokenOff: before anything was sent to the caller, or in the middle of the answer.
            PointsElsewhere: before anything was sent to the caller.
            CallerGone: the caller hung up.
        """
        gone = asyncio.Event()
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _v in scope["headers"])
        body = _Body(receive, gone) if has_body else None
        call = asyncio.create_task(self._request(scope, upstream, path, body))
        listening = asyncio.create_task(_until_gone(receive, body, gone))
        try:
            await asyncio.wait({call, listening}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise CallerGone
            answer = call.result()
            mount = scope["path"].removesuffix(path)
            async with answer:
                await self._answer(answer, send, upstream, gone, _location(answer, mount, _host(scope)))
        except aiohttp.ClientConnectorError:
            raise NotListening from None
        except (aiohttp.ClientError, TimeoutError):
            if gone.is_set():
                raise CallerGone from None
            raise BrokenOff from None
        finally:
            for task in (call, listening):
                task.cancel()
            await asyncio.gather(call, listening, return_exceptions=True)

    async def close(self) -> None:
        """Close the connections of the running loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            session = aiohttp.ClientSession(
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                timeout=aiohttp.ClientTimeout(total=None, connect=5, sock_read=150),
            )
            self._sessions[loop] = session
        return session

    async def _request(self, scope: Scope, upstream: Upstream, path: str, body: _Body | None) -> aiohttp.ClientResponse:
        query = scope["query_string"].decode("latin-1")
        path_and_query = quote(path, safe=PLAIN) + (f"?{query}" if query else "")
        target = f"{upstream.prefix}/{path_and_query}"
        url = URL(f"http://{upstream.host}:{upstream.port}{target}", encoded=True)
        headers = _job_headers(scope, upstream.headers)
        data = body.chunks() if body else None
        return await self._session().request(scope["method"], url, headers=headers, data=data, allow_redirects=False)

    async def _answer(
        self, answer: aiohttp.ClientResponse, send: Send, upstream: Upstream, gone: asyncio.Event, location: str
    ) -> None:
        if answer.status == 401:  # not the server this key was made for
            raise NotListening
        if answer.status == 200 and upstream.on_success:
            await sync_to_async(upstream.on_success)()
        named = {n.strip().lower() for v in answer.headers.getall("Connection", []) for n in v.encode().split(b",")}
        headers = [
            (name.lower(), value)
            for name, value in answer.raw_headers
            if name.lower() not in HOP_BY_HOP | NOT_RETURNED | named
        ]
        headers += [(b"location", location.encode())] if location else []
        headers += [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"private, no-store")]
        headers += [(b"content-security-policy", b"sandbox; default-src 'none'")]  # an answer is never a page of ours
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        async for chunk in answer.content.iter_any():
            if gone.is_set():
                raise CallerGone
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class _Body:
    """The caller's body, handed on as it arrives."""

    def __init__(self, receive: Receive, gone: asyncio.Event) -> None:
        self.receive, self.gone = receive, gone
        self.over = asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        receive = paced(self.receive)
        try:
            while True:
                try:
                    message = await receive()
                except TooSlow:
                    message = {"type": "http.disconnect"}
                if message["type"] == "http.disconnect":
                    self.gone.set()
                    raise CallerGone
                if message.get("body"):
                    yield message["body"]
                if not message.get("more_body"):
                    return
        finally:
            self.over.set()


async def _until_gone(receive: Receive, body: _Body | None, gone: asyncio.Event) -> None:
    """Returns when the caller hung up."""
    if body is not None:
        await body.over.wait()
    while not gone.is_set():
        if (await receive())["type"] == "http.disconnect":
            gone.set()


def _job_headers(scope: Scope, extra: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Headers for the job: the caller's without hop-by-hop ones, credentials and false claims about us."""
    named = {
        part.strip().lower() for name, value in scope["headers"] if name == b"connection" for part in value.split(b",")
    }
    left_out = HOP_BY_HOP | NOT_FORWARDED | named
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in scope["headers"]
        if name not in left_out and not name.startswith(PLATFORM_HEADERS)
    ]
    client = (scope.get("client") or ["-"])[0]
    return [
        *headers,
        ("x-forwarded-for", client),
        ("x-forwarded-proto", scope.get("scheme", "http")),
        ("x-forwarded-host", _host(scope)),
        *extra,
    ]


def _host(scope: Scope) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")


def _location(answer: aiohttp.ClientResponse, mount: str, host: str) -> str:
    """Return the `Location` of an answer as a path below `mount`, which is what the caller sees; "" without one.

    Args:
        mount: "/serve/<slug>/", below which the caller reaches the root of the job's server.
        host: by which the caller reaches the platform; a server that believes in it names it.

    Raises:
        PointsElsewhere: a redirect to another host, or to something that is no web address.
    """
    location = answer.headers.get("Location", "")
    if not location:
        return ""
    with suppress(ValueError):
        target, public = answer.url.join(URL(location)), URL(f"http://{host}")
        named = target.host, target.explicit_port
        own = named in {(answer.url.host, answer.url.explicit_port), (public.host, public.explicit_port)}
        if own and target.scheme in {"http", "https"} and ".." not in target.path and "\\" not in target.path:
            return mount + target.raw_path_qs.removeprefix(mount).lstrip("/")
    if 300 <= answer.status < 400:
        raise PointsElsewhere
    return ""
