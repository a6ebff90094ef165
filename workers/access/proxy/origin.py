"""The origin of jobs' ports: an HTTP server of its own that lets admitted browsers through to servers in jobs.

It is no part of the web server, so that a page of a job has another origin than the platform, and never its cookies.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import ParamSpec, TypeVar
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections

from accounts.sign_in import lockout
from workers.access.proxy import (
    activity,
    addresses,
    admissions,
    headers,
    passing_http,
    passing_socket,
    published_ports,
    refusals,
)
from workers.access.proxy.addresses import Target
from workers.access.proxy.admissions import Grant
from workers.access.proxy.connecting import Open, Sessions, through_exec_server
from workers.access.proxy.refusals import Refused
from workers.access.proxy.watching import Watch

P = ParamSpec("P")
R = TypeVar("R")
MAX_LINE_BYTES = 32 * 1024
IDLE_TIMEOUT_S = 75.0  # a connection without a request


class Unreadable(logging.Filter):
    """Drops what aiohttp says of requests that are none: it repeats their lines, and these hold tickets and tokens."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


log = logging.getLogger(__name__)
log.addFilter(Unreadable())


class Origin:
    """The application. One in each process.

    Args:
        opening: how connections to jobs are opened.
    """

    def __init__(self, opening: Open = through_exec_server) -> None:
        self.sessions = Sessions(opening)
        self.watch = Watch(self._read_grant)
        self.noting = activity.Noting()

    def runner(self) -> web.AppRunner:
        """The server; its requests are cancelled when their caller disconnects."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        app.on_shutdown.append(self._close)
        return web.AppRunner(
            app,
            access_log=None,
            logger=log,
            handler_cancellation=True,
            keepalive_timeout=IDLE_TIMEOUT_S,
            max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_LINE_BYTES,
            auto_decompress=False,
            shutdown_timeout=1.0,
        )

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        raw = request.raw_path.partition("?")[0]
        target = addresses.parse_target(request.host, raw)
        try:
            if target is None:
                raise Refused("not_found")
            if target.rest is None:
                query = request.raw_path.removeprefix(raw)
                return web.Response(status=308, headers={"Location": target.mount + query})
            if target.rest == addresses.ENTER:
                return await self._enter(request, target)
            return await self._pass(request, target)
        except Refused as refused:
            return refusals.answer(request, refused, target.job if target else None)

    async def _enter(self, request: web.Request, target: Target) -> web.Response:
        """Exchange a ticket for this origin's own cookie, and redirect without it in the address."""
        ticket = request.query.get("ticket", "")[:200]
        if request.method != "GET" or not ticket:
            raise Refused("not_admitted")
        cookie, path = await _rows(admissions.enter)(target.job, target.name, ticket, sessions=_sessions(request))
        secure = is_secure(request)
        name = headers.own_cookie(target.job, target.name, secure=secure, mount=target.mount)
        set_cookie = f"{name}={cookie}; Path={target.mount}; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")
        response_headers = {"Location": target.mount + path, "Set-Cookie": set_cookie}
        return web.Response(
            status=303, headers=response_headers | {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
        )

    async def _pass(self, request: web.Request, target: Target) -> web.StreamResponse:
        """Let a request through, if its caller may and no foreign page sent it."""
        credential, grant = await self._authenticate(request, target)
        by_cookie = not credential.startswith("bearer ")
        if by_cookie and not _own_page(request):
            raise Refused("foreign_page")
        mode = request.headers.get("Sec-Fetch-Mode", "")
        if activity.is_persons(request.method, mode):
            await self.note(grant)
        passing = headers.Passing(
            host=request.host,
            port=grant.port,
            secure=is_secure(request),
            mount=target.mount,
            strips=grant.strips,
            known_cookies=None if addresses.has_host_per_port() else grant.cookie_names,
            authorization=f"token {grant.secret}" if grant.secret else "",
        )
        question = (target.job, target.name, credential)
        session = self.sessions.get(grant)
        with self.watch.over(question, request) as exchange:
            if is_socket(request):
                on_activity = partial(self.note, grant)
                return await passing_socket.forward(session, request, passing, exchange, on_activity)
            learn = partial(self._learn, question, grant)
            return await passing_http.forward(session, request, passing, exchange, learn)

    async def _authenticate(self, request: web.Request, target: Target) -> tuple[str, Grant]:
        """The credential that opens the port, and what it opens.

        Raises:
            Refused: none does.
        """
        authorization = request.headers.get("Authorization", "")
        if headers.is_token(authorization):
            writes = request.method not in {"GET", "HEAD", "OPTIONS"} or is_socket(request)
            kind = "bearer writing " if writes else "bearer reading "
            credentials = [kind + authorization.partition(" ")[2].strip()]
        else:
            own = headers.own_cookie(target.job, target.name, secure=is_secure(request), mount=target.mount)
            held = request.headers.getall("Cookie", [])
            credentials = [value for part in held for name, value in headers.cookies(part) if name == own][:5]
        refused: Refused | None = None
        for credential in credentials:
            try:
                return credential, await self.watch.get_grant((target.job, target.name, credential))
            except Refused as exc:
                refused = refused or exc
                if exc.code == "not_signed_in":
                    scope = {"method": request.method, "path": request.path, "client": (request.remote or "", 0)}
                    await _rows(lockout.count_token_guess_at)(scope)
        raise refused or Refused("not_admitted")

    async def _read_grant(self, question: tuple[int, str, str]) -> Grant:
        """What a credential opens now, by the database."""
        job, name, credential = question
        if credential.startswith("bearer "):
            _bearer, does, secret = credential.split(" ", 2)
            return await _rows(admissions.by_token)(job, name, secret, writes=does == "writing")
        return await _rows(admissions.by_cookie)(job, name, credential)

    async def note(self, grant: Grant) -> None:
        """Note that a person did something with a port."""
        if self.noting.is_due(grant.job_id):
            await _rows(activity.note)(grant.job_id)

    async def _learn(self, question: tuple[int, str, str], grant: Grant, names: Collection[str]) -> None:
        """Remember which cookies the server of a port sets."""
        if len(grant.cookie_names) < published_ports.MAX_COOKIES:
            await _rows(published_ports.remember_cookies)(grant.port_id, names)
            self.watch.forget(question)

    async def _close(self, app: web.Application) -> None:
        await self.watch.close()
        await self.sessions.close()


def is_secure(request: web.Request) -> bool:
    """Whether the browser came by https, through a server in front that says so."""
    return request.headers.get("X-Forwarded-Proto", "") == "https"


def is_socket(request: web.Request) -> bool:
    """Whether a request opens a WebSocket."""
    return request.headers.get("Upgrade", "").lower() == "websocket"


def _sessions(request: web.Request) -> list[str]:
    """Keys of the platform's sessions that a browser holds: its cookies come to every port of the machine."""
    held = [pair for part in request.headers.getall("Cookie", []) for pair in headers.cookies(part)]
    return [value[:100] for name, value in held if name == settings.SESSION_COOKIE_NAME][:3]


def _own_page(request: web.Request) -> bool:
    """Whether a page of this origin sent a request that may change something, or no page did."""
    if request.method in {"GET", "HEAD", "OPTIONS"} and not is_socket(request):
        return True  # no foreign page reads the answer
    origins = request.headers.getall("Origin", [])
    if not origins:
        return not is_socket(request)
    return all(_place(origin) == request.host.lower() for origin in origins)


def _place(origin: str) -> str:
    """Host and port of an `Origin` header; "" where it is no address."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _rows(work: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Run a function that asks the database, off the event loop."""

    def fresh(*args: P.args, **kwargs: P.kwargs) -> R:
        close_old_connections()
        return work(*args, **kwargs)

    return sync_to_async(fresh)
