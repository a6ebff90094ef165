"""`/serve/<service>/…` → the service's own server, streamed both ways. A raw ASGI application.

Who may call, and where the server listens, comes from the rows: service → its running job → the port leased to
it. A key made for exactly that attempt goes along; a server of anybody else does not know it, so a stale port
never reaches another tenant. The platform's cookies and tokens stop here.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp
from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.utils.translation import gettext as _
from yarl import URL

from accounts.asgi import find_user
from accounts.permissions import Action
from inference.models import Service
from inference.services import serving, withdrawing
from workers.services import jobs as queue
from workers.states import JobState

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

PREFIX = "/serve/"
OPEN = ("v2", "predict", "metrics")  # first parts of paths that lead inside
HOP_BY_HOP = {
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection",
    b"te", b"trailer", b"transfer-encoding", b"upgrade",
}  # fmt: skip
KEPT_HERE = {b"cookie", b"authorization", b"host", b"x-csrftoken", b"origin", b"referer", b"expect"}
OURS = (b"x-forwarded-", b"x-aip-", b"forwarded")  # callers do not speak for us
NOT_HANDED_ON = {b"set-cookie", b"server", b"date"}
REMEMBERED_S = 1.0  # how long an answer about who and where holds
REMEMBERED = 2000


class Refused(Exception):
    """The call ends here: status, stable code, sentence."""

    def __init__(self, status: int, code: str, detail: str, **headers: str) -> None:
        self.status, self.code, self.detail, self.headers = status, code, detail, headers


@dataclass(frozen=True)
class Target:
    """Where a permitted call goes."""

    service: Service
    host: str
    port: int
    attempt: int
    key: str


class CallerGone(Exception):
    """Nobody waits for the answer any more."""


def _find(scope: Scope, slug: str) -> Target:
    """Who asks, what for, and where it runs.

    Raises:
        Refused: 401 nobody, 403 their role, 404 not theirs or not there, 410 stopped or without model, 503 not up yet.
    """
    close_old_connections()
    user = find_user(scope)
    if user is None:
        raise Refused(
            401, "not_signed_in", _("Send a token: Authorization: Bearer aip_…"), **{"WWW-Authenticate": "Bearer"}
        )
    if not user.can(Action.SERVICES_CALL):
        raise Refused(403, "not_allowed", _("Your role does not allow calling services."))
    service = Service.objects.visible_to(user).filter(slug=slug).select_related("job", "owner").first()
    if service is None:
        raise Refused(404, "not_found", _("There is no such service."))
    job = service.job
    if job is None or job.is_final or job.state == JobState.STOPPING:
        raise Refused(410, "service_stopped", _("This service is stopped. Start it again to use its address."))
    if why := withdrawing.why_not(service):
        raise Refused(410, "model_withdrawn", why)
    place = queue.endpoint(job) if job.state == JobState.RUNNING else None
    if place is None:
        raise Refused(503, "service_starting", _("This service is not running yet."), **{"Retry-After": "2"})
    return Target(service, *place, job.attempt_number, serving.key_for(job.pk, job.attempt_number))


class Proxy:
    """The application; one instance per process, one client session per event loop."""

    def __init__(self, find: Callable[[Scope, str], Target] = _find) -> None:
        self._find = sync_to_async(find)
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()
        self._known: OrderedDict[bytes, tuple[float, Target]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        slug, _slash, rest = scope["path"].removeprefix(PREFIX).partition("/")
        try:
            if rest.split("/")[0] not in OPEN or ".." in rest.split("/"):
                raise Refused(404, "not_found", _("Services answer at v2/…, predict and metrics."))
            who = _fingerprint(scope, slug)
            target = await self._target(who, scope, slug)
            try:
                await self._pass(scope, receive, send, target, rest)
            except Refused:
                self._known.pop(who, None)  # what was remembered may be old
                raise
        except Refused as refused:
            await _refuse(send, refused)
        except CallerGone:
            return

    async def _target(self, who: bytes, scope: Scope, slug: str) -> Target:
        until, target = self._known.get(who, (0.0, None))
        if target is not None and time.monotonic() < until:
            return target
        self._known.pop(who, None)
        target = await self._find(scope, slug)
        self._known[who] = (time.monotonic() + REMEMBERED_S, target)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return target

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

    async def close(self) -> None:
        """Close the connections of the running loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _pass(self, scope: Scope, receive: Receive, send: Send, target: Target, rest: str) -> None:
        """Send the request on, hand its answer back as it comes."""
        gone = asyncio.Event()
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _v in scope["headers"])
        body = _Body(receive, gone) if has_body else None
        call = asyncio.create_task(self._ask(scope, target, rest, body))
        listening = asyncio.create_task(_until_gone(receive, body, gone))
        try:
            await asyncio.wait({call, listening}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise CallerGone
            answer = call.result()
            async with answer:
                await self._answer(answer, send, target, gone)
        except aiohttp.ClientConnectorError:
            raise _starting() from None
        except (aiohttp.ClientError, TimeoutError):
            if gone.is_set():
                raise CallerGone from None
            raise Refused(502, "service_failed", _("The service broke off. Its log says why.")) from None
        finally:
            for task in (call, listening):
                task.cancel()
            await asyncio.gather(call, listening, return_exceptions=True)

    async def _ask(self, scope: Scope, target: Target, rest: str, body: _Body | None) -> aiohttp.ClientResponse:
        query = scope["query_string"].decode("latin-1")
        path = "/" + rest + (f"?{query}" if query else "")
        url = URL(f"http://{target.host}:{target.port}{URL(path).raw_path_qs}", encoded=True)
        headers = _onward(scope, target.key)
        data = body.chunks() if body else None
        return await self._session().request(scope["method"], url, headers=headers, data=data, allow_redirects=False)

    async def _answer(self, answer: aiohttp.ClientResponse, send: Send, target: Target, gone: asyncio.Event) -> None:
        if answer.status == 401:  # not the server this key was made for
            raise _starting()
        if answer.status == 200 and not target.service.answers:
            await sync_to_async(serving.remember_ready)(target.service, target.attempt)
        named = {n.strip().lower() for v in answer.headers.getall("Connection", []) for n in v.encode().split(b",")}
        headers = [
            (name.lower(), value)
            for name, value in answer.raw_headers
            if name.lower() not in HOP_BY_HOP | NOT_HANDED_ON | named
        ]
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
        try:
            while True:
                message = await self.receive()
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


def _fingerprint(scope: Scope, slug: str) -> bytes:
    """One caller and one service; whatever decides about the permission goes in."""
    told = {b"cookie", b"authorization", b"origin", b"host"}
    parts = [slug.encode(), scope["method"].encode()]
    parts += [name + b":" + value for name, value in scope["headers"] if name in told]
    return sha256(b"\n".join(parts)).digest()


def _onward(scope: Scope, key: str) -> list[tuple[str, str]]:
    """Headers for the service: the caller's without hop-by-hop ones, credentials and lies about us."""
    named = {
        part.strip().lower() for name, value in scope["headers"] if name == b"connection" for part in value.split(b",")
    }
    left_out = HOP_BY_HOP | KEPT_HERE | named
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in scope["headers"]
        if name not in left_out and not name.startswith(OURS)
    ]
    client = (scope.get("client") or ["-"])[0]
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    return [
        *headers,
        ("x-forwarded-for", client),
        ("x-forwarded-proto", scope.get("scheme", "http")),
        ("x-forwarded-host", host),
        (serving.KEY_HEADER, key),
    ]


def _starting() -> Refused:
    return Refused(503, "service_starting", _("This service is starting; try again."), **{"Retry-After": "1"})


async def _refuse(send: Send, refused: Refused) -> None:
    body = {
        "type": "about:blank",
        "title": HTTPStatus(refused.status).phrase,
        "status": refused.status,
        "code": refused.code,
        "detail": str(refused.detail),
        "error": str(refused.detail),  # where clients of the Open Inference Protocol look
    }
    payload = json.dumps(body).encode()
    headers: Headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(payload)).encode()),
        (b"cache-control", b"no-store"),
    ]
    headers += [(name.lower().encode(), value.encode()) for name, value in refused.headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": payload})


application = Proxy()
