"""An ASGI application that lets permitted people reach the ports of jobs.

Who may call, and where the job listens, is found by the app that mounts it (`find`); the answer holds for a second.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext, suppress
from hashlib import sha256
from http import HTTPStatus

from asgiref.sync import sync_to_async
from django.utils.translation import gettext_lazy as _

from accounts.sign_in.asgi import in_callers_language
from workers.access.proxy.forwarding import (
    BrokenOff,
    CallerGone,
    Forwarder,
    NotListening,
    PointsElsewhere,
    Receive,
    Scope,
    Send,
    Upstream,
)
from workers.access.proxy.request_copies import Copier, Reading, Watched

REMEMBERED_S = 1.0  # how long an answer about who and where holds
REMEMBERED = 2000
RETRY_DELAY_S = 2.0  # so long a server that did not listen is left alone where there are others
HELD, HELD_EACH = 200, 60  # callers at once that wait for servers to start, and for those of one thing
HELD_AGAIN_S = 0.2


class Refused(Exception):
    """The call is refused: status, stable code, a sentence (a lazy one is in the caller's language)."""

    def __init__(self, status: int, code: str, detail: object, **headers: str) -> None:
        self.status, self.code, self.detail, self.headers = status, code, detail, headers


class NotYet(Refused):
    """The called service is starting: the call waits at most `patience_s`; then this is the response."""

    def __init__(self, refused: Refused, patience_s: float) -> None:
        super().__init__(refused.status, refused.code, refused.detail, **refused.headers)
        self.patience_s = patience_s


class PortProxy:
    """The application; one instance per process and mount point.

    Args:
        split: path → (what is called, path behind it); raises `Refused` for paths that lead nowhere.
        find: who asks for what → where it listens; raises `Refused`. Runs off the event loop.
        not_listening, broken_off: what the caller is told when the job's server does not answer, or breaks off.
        error: path, status, code and sentence of a refusal → what its body has under "error".
    """

    def __init__(
        self,
        *,
        split: Callable[[str], tuple[str, str]],
        find: Callable[[Scope, str], Upstream],
        not_listening: Callable[[], Refused],
        broken_off: Callable[[], Refused],
        error: Callable[[str, int, str, str], object] = lambda _path, _status, _code, detail: detail,
    ) -> None:
        self._split, self._find = split, sync_to_async(find)
        self._not_listening, self._broken_off = not_listening, broken_off
        self._error = error
        self._held: dict[str, int] = {}
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._forwarder = Forwarder()
        self._copier = Copier(self._forwarder)
        self._known: OrderedDict[bytes, tuple[float, Upstream]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            called, path = self._split(scope["path"])
            caller = _fingerprint(scope, called)
            upstream = await self._upstream(caller, scope, called)
            try:
                if upstream.admit:
                    await upstream.admit(scope, path)
                await self._forward(scope, receive, send, called, path, caller, upstream)
            except NotListening:
                self._known.pop(caller, None)  # what was remembered may be old
                raise self._not_listening() from None
            except BrokenOff:
                self._known.pop(caller, None)
                raise self._broken_off() from None
            except PointsElsewhere:
                raise Refused(
                    502, "redirected_elsewhere", _("The address redirects to another address, which is not followed.")
                ) from None
        except Refused as refused:
            await self._refuse(scope, send, refused)
        except CallerGone:
            return

    async def _forward(
        self, scope: Scope, receive: Receive, send: Send, called: str, path: str, caller: bytes, upstream: Upstream
    ) -> None:
        """Forward the call; where nothing listens any more, once more to the present upstream.

        Raises:
            NotListening, BrokenOff, PointsElsewhere, CallerGone: see `Forwarder.forward`.
            Refused: see `find`.
        """
        chosen = upstream.choose(scope, path) if upstream.choose else upstream
        reading = Reading(receive)
        try:
            await self._pass(scope, reading.receive, send, chosen, path)
            return
        except NotListening:
            if chosen.load is not None:
                chosen.load.away_until = time.monotonic() + RETRY_DELAY_S
            if reading.begun:  # what was read of the body cannot be read again
                raise
            other = upstream.choose(scope, path) if upstream.choose else upstream
            if (chosen.host, chosen.port) != (other.host, other.port):  # that one has not gone
                await self._pass(scope, receive, send, other, path)
                return
            self._known.pop(caller, None)
            renewed = await self._upstream(caller, scope, called)
            if (renewed.host, renewed.port, renewed.headers) == (chosen.host, chosen.port, chosen.headers):
                raise
            await self._pass(scope, receive, send, renewed.choose(scope, path) if renewed.choose else renewed, path)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, upstream: Upstream, path: str) -> None:
        """Send the call on, tell what came of it, and copy it to whom wants a copy."""
        with upstream.load or nullcontext():
            await self._passed(scope, receive, send, upstream, path)

    async def _passed(self, scope: Scope, receive: Receive, send: Send, upstream: Upstream, path: str) -> None:
        if upstream.on_done is None:
            await self._forwarder.forward(scope, receive, send, upstream, path)
            return
        copied = upstream.copy is not None and self._copier.acquire()
        call = Watched(receive, send, keep=copied)
        try:
            await self._forwarder.forward(scope, call.receive, call.send, upstream, path)
        except BrokenOff:
            call.status = 502
            raise
        finally:
            if call.status:
                upstream.on_done(call.status, call.seconds, call.bytes_in, call.bytes_out)
            if copied and upstream.copy is not None and call.is_complete:
                self._copier.start(scope, path, upstream.copy, call)
            elif copied:
                self._copier.give_back()

    async def _find_upstream(self, scope: Scope, called: str) -> Upstream:
        """Find the upstream of the call; while it is starting, wait. All waiting calls share one check."""
        began = time.monotonic()
        try:
            return await self._find(scope, called)
        except NotYet as refused:
            if self._held.get(called, 0) >= HELD_EACH or sum(self._held.values()) >= HELD:
                raise
            last = refused
        self._held[called] = self._held.get(called, 0) + 1
        try:
            while (left := last.patience_s - (time.monotonic() - began)) > 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(self._start_check(scope, called)), left)
                try:
                    return await self._find(scope, called)
                except NotYet as refused:
                    last = refused
            raise last
        finally:
            self._held[called] -= 1
            if not self._held[called]:
                del self._held[called]

    def _start_check(self, scope: Scope, called: str) -> asyncio.Task[None]:
        """The task that ends when the called service has started, or cannot start."""
        if called not in self._looks:
            task = asyncio.get_running_loop().create_task(self._until_there(scope, called))
            self._looks[called] = task
            task.add_done_callback(lambda _task: self._looks.pop(called, None))
        return self._looks[called]

    async def _until_there(self, scope: Scope, called: str) -> None:
        while self._held.get(called):
            await asyncio.sleep(HELD_AGAIN_S)
            try:
                await self._find(scope, called)
            except NotYet:
                continue
            except Refused:
                return
            return

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._copier.end()
        await self._forwarder.close()

    async def _upstream(self, caller: bytes, scope: Scope, called: str) -> Upstream:
        until, upstream = self._known.get(caller, (0.0, None))
        if upstream is not None and time.monotonic() < until:
            return upstream
        self._known.pop(caller, None)
        upstream = await self._find_upstream(scope, called)
        self._known[caller] = (time.monotonic() + REMEMBERED_S, upstream)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return upstream

    async def _refuse(self, scope: Scope, send: Send, refused: Refused) -> None:
        with in_callers_language(scope):
            detail = str(refused.detail)
        body = {
            "type": "about:blank",
            "title": HTTPStatus(refused.status).phrase,
            "status": refused.status,
            "code": refused.code,
            "detail": detail,
            "error": self._error(scope["path"], refused.status, refused.code, detail),
        }
        payload = json.dumps(body).encode()
        headers: list[tuple[bytes, bytes]] = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(payload)).encode()),
            (b"cache-control", b"no-store"),
        ]
        headers += [(name.lower().encode(), value.encode()) for name, value in refused.headers.items()]
        await send({"type": "http.response.start", "status": refused.status, "headers": headers})
        await send({"type": "http.response.body", "body": payload})


def _fingerprint(scope: Scope, called: str) -> bytes:
    """One caller and one thing called; whatever decides about the permission goes in."""
    deciding = {b"cookie", b"authorization", b"origin", b"host"}
    parts = [called.encode(), scope["method"].encode()]
    parts += [name + b":" + value for name, value in scope["headers"] if name in deciding]
    return sha256(b"\n".join(parts)).digest()
