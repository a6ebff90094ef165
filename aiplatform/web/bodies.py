"""Bodies of requests to pages and API, taken in before a thread works on them: how large, from whom, how slow.

What is larger than a form of text is taken from people who are signed in only, since it lies on the platform's disk
before anybody looks at it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestAborted
from django.db import close_old_connections
from django.http import JsonResponse
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _

from accounts.sign_in.asgi import find_user
from aiplatform import env
from aiplatform.lib import disk
from aiplatform.lib.pace import Receive, TooSlow, paced
from aiplatform.lib.problems import problem
from aiplatform.lib.registry import Registry, dotted_name

ANYBODYS_BYTES = 256 << 10
"""Largest body of who is not signed in."""
LOOK_BYTES = 16 << 20
"""A look at the free disk space after each so many bytes."""
#: Find senders of large bodies other than signed-in users, by the scope of the request; None for unknown ones.
CALLERS: Registry[Callable[[dict[str, Any]], object | None]] = Registry("caller with a large body", name=dotted_name)


class BodyRefused(Exception):
    """This body is not taken in: HTTP status, stable code, a lazy sentence."""

    def __init__(self, status: int, code: str, detail: object, **facts: object) -> None:
        super().__init__(code)
        self.status, self.code, self.detail, self.facts = status, code, detail, facts

    def answer(self) -> JsonResponse:
        """Return the response to the sender; it closes the connection, with data that is still sent."""
        detail = str(self.detail)
        body = problem(self.status, self.code, detail % self.facts if self.facts else detail)
        response = JsonResponse(body, status=self.status, content_type="application/problem+json")
        response["Connection"] = "close"
        return response


def _no_room() -> BodyRefused:
    return BodyRefused(507, "disk_full", lazy(disk.sentence, str)())


async def read(scope: dict[str, Any], receive: Receive, in_thread: Callable[..., Any]) -> IO[bytes]:
    """Return the complete body, positioned at its start; a large one is in a temporary file.

    Raises:
        BodyRefused: too large, too large for who sends it, or too slow.
        RequestAborted: the sender hung up.
    """
    receive = paced(receive)
    bounds = _Bounds(scope, in_thread)
    body = tempfile.SpooledTemporaryFile(max_size=settings.FILE_UPLOAD_MAX_MEMORY_SIZE)  # noqa: SIM115 - the caller closes it
    try:
        await bounds.require(_announced(scope), on_disk=0)
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestAborted
            piece = message.get("body", b"")
            await bounds.require(body.tell() + len(piece), on_disk=body.tell())
            body.write(piece)
            more = message.get("more_body", False)
    except BaseException as exc:
        body.close()
        if isinstance(exc, TooSlow):
            raise BodyRefused(408, "too_slow", _("The request arrived too slowly.")) from exc
        if disk.is_full(exc):
            raise _no_room() from exc
        raise
    body.seek(0)
    return body


def with_length(scope: dict[str, Any], body: IO[bytes]) -> dict[str, Any]:
    """Return the scope with the length of the complete body, which a caller that sends it in chunks did not announce.

    Parsers take a body without a length for an empty one.
    """
    if any(name == b"content-length" for name, _value in scope["headers"]):
        return scope
    size = body.seek(0, os.SEEK_END)
    body.seek(0)
    return {**scope, "headers": [*scope["headers"], (b"content-length", b"%d" % size)]} if size else scope


class _Bounds:
    """What one request may send. Who it is from is found once, and only for a large body."""

    def __init__(self, scope: dict[str, Any], in_thread: Callable[..., Any]) -> None:
        self._scope, self._in_thread = scope, in_thread
        self._known = False
        self._next_look = 0

    async def require(self, size: int, *, on_disk: int) -> None:
        """Refuse a body that will have `size` bytes, of which `on_disk` are here."""
        if size <= ANYBODYS_BYTES:
            return
        if not self._known:
            if await self._in_thread(_sender, self._scope) is None:
                raise BodyRefused(401, "not_signed_in", _("Sign in before sending large requests."))
            self._known = True
        if size > env.MAX_UPLOAD_BYTES:
            limit = f"{env.MAX_UPLOAD_BYTES:,}"
            raise BodyRefused(413, "too_large", _("At most %(limit)s bytes per request."), limit=limit)
        if on_disk >= self._next_look:
            self._next_look = on_disk + LOOK_BYTES
            there = await asyncio.to_thread(shutil.disk_usage, tempfile.gettempdir())
            if there.free - (size - on_disk) < min(env.MIN_FREE_BYTES, there.total // 20):
                raise _no_room()


def _announced(scope: dict[str, Any]) -> int:
    value = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return int(value) if value.isdigit() and len(value) < 20 else 0


def _sender(scope: dict[str, Any]) -> Any:
    """Return the sender: a signed-in user, or a caller of a service that authenticates its own."""
    close_old_connections()
    return next((caller for find_caller in CALLERS if (caller := find_caller(scope)) is not None), None) or find_user(
        scope
    )
