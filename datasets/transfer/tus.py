"""tus 1.0 as a raw ASGI application: uploaded bytes go from the socket to the file.

Extensions: creation, checksum (sha256, sha1), expiration, termination. The row says how long the file will be,
the file's size says how much of it is here: nothing else is remembered, so any process can go on after any other.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import fcntl
import hashlib
import json
import os
from collections.abc import Awaitable, Callable
from email.utils import format_datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError, close_old_connections
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from accounts.sign_in.asgi import in_callers_language, speak_to, user_from_scope
from aiplatform import env
from aiplatform.lib import disk
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pace import paced
from datasets.models import Upload
from datasets.services import uploads

PREFIX = "/uploads/tus/"
BLOCK = 4 << 20  # bytes gathered before one write
ALGORITHMS = {"sha256": hashlib.sha256, "sha1": hashlib.sha1}
VERSION = (b"tus-resumable", b"1.0.0")

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

#: Uploads this process is receiving; a newer request for one tells the older to let go.
_receiving: dict[str, asyncio.Event] = {}


class Refused(Exception):
    """An error response of the protocol: status and one line."""

    def __init__(self, status: int, message: str, *headers: Header) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one request below /uploads/tus/."""
    with in_callers_language(scope):
        status, headers, body = await _answer_or_refusal(scope, receive)
    if scope["method"] == "HEAD":
        body = b""
    if body:
        headers = [*headers, (b"content-type", b"application/problem+json")]
    headers = [VERSION, (b"cache-control", b"no-store"), *headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _answer_or_refusal(scope: Scope, receive: Receive) -> tuple[int, list[Header], bytes]:
    try:
        return await _answer(scope, receive)
    except Refused as refusal:
        return refusal.status, list(refusal.headers), _body(refusal.status, refusal.message)
    except DomainError as refusal:
        return refusal.status, [], _body(refusal.status, refusal.message, refusal.code)
    except ConnectionError:
        # The sender does not read this, but a server logs a request without an answer as our failure.
        return 408, [(b"connection", b"close")], b""
    except (OSError, DatabaseError) as exc:
        if not disk.is_full(exc):
            raise
        full = disk.DiskFull(
            _("The disk of the platform is full. The uploaded part is kept; free disk space and continue.")
        )
        return full.status, [], _body(full.status, full.message, full.code)


def _body(status: int, message: str, code: str = "upload_refused") -> bytes:
    return json.dumps({"type": "about:blank", "status": status, "code": code, "detail": message}).encode()


async def _answer(scope: Scope, receive: Receive) -> tuple[int, list[Header], bytes]:
    headers = {key.lower(): value for key, value in scope["headers"]}
    method = scope["method"]
    if method == "OPTIONS":
        return 204, _capabilities(), b""
    if headers.get(b"tus-resumable") != b"1.0.0":
        raise Refused(412, _("Use version 1.0.0 of the tus protocol."), (b"tus-version", b"1.0.0"))
    user = await _user(scope)
    upload_id = scope["path"].removeprefix(PREFIX.rstrip("/")).strip("/")
    if method == "POST" and not upload_id:
        return await _create(user, headers)
    if not upload_id or "/" in upload_id:
        raise Refused(404, _("This upload does not exist or was deleted."))
    upload = await _in_thread(uploads.find, user, upload_id)
    if method == "HEAD":
        return await _head(upload)
    if method == "PATCH":
        return await _patch(upload, headers, receive)
    if method == "DELETE":
        async with _Locked(upload):
            await _in_thread(uploads.terminate, upload)
        return 204, [], b""
    raise Refused(405, _("Not a method of the tus protocol."), (b"allow", b"OPTIONS, POST, HEAD, PATCH, DELETE"))


def _capabilities() -> list[Header]:
    return [
        (b"tus-version", b"1.0.0"),
        (b"tus-extension", b"creation,checksum,expiration,termination"),
        (b"tus-checksum-algorithm", ",".join(ALGORITHMS).encode()),
        (b"tus-max-size", str(env.MAX_UPLOAD_BYTES).encode()),
    ]


async def _user(scope: Scope) -> User:
    user = await user_from_scope(scope)
    if user is None:
        raise Refused(401, _("Sign in, or send a token."), (b"www-authenticate", b"Bearer"))
    speak_to(user)
    await _in_thread(_require_use, user)
    return user


def _require_use(user: User) -> None:
    """Let in who makes datasets, and who brings files to the home or code to a job."""
    if not user.can(Action.JOBS_SUBMIT):
        user.require(Action.DATASETS_CREATE)


async def _in_thread(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run database work outside of the event loop; connections that died are replaced."""

    def run() -> Any:
        close_old_connections()
        try:
            return call(*args, **kwargs)
        finally:
            close_old_connections()

    return await sync_to_async(run)()


async def _create(user: User, headers: dict[bytes, bytes]) -> tuple[int, list[Header], bytes]:
    length = _number(headers, b"upload-length")
    metadata = _metadata(headers.get(b"upload-metadata", b""))
    upload = await _in_thread(uploads.create, owner=user, length=length, metadata=metadata)
    return 201, [(b"location", f"{PREFIX}{upload.pk}".encode()), *_expiry(upload)], b""


async def _head(upload: Upload) -> tuple[int, list[Header], bytes]:
    async with _Locked(upload):  # a sender that lost its connection may still be writing
        offset = upload.offset if upload.state == Upload.State.OPEN else upload.length
        if upload.state == Upload.State.OPEN and offset == upload.length:  # its server died before it could say so
            await _in_thread(uploads.arrived, upload)
    headers = [(b"upload-offset", str(offset).encode()), (b"upload-length", str(upload.length).encode())]
    pairs = [f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in upload.metadata.items()]
    if pairs:
        headers.append((b"upload-metadata", ",".join(pairs).encode()))
    return 200, [*headers, *_expiry(upload)], b""


async def _patch(upload: Upload, headers: dict[bytes, bytes], receive: Receive) -> tuple[int, list[Header], bytes]:
    if headers.get(b"content-type") != b"application/offset+octet-stream":
        raise Refused(415, _("Send application/offset+octet-stream."))
    checksum = _checksum(headers.get(b"upload-checksum"))
    start = _number(headers, b"upload-offset")
    announced = int(headers.get(b"content-length", b"0") or 0)
    async with _Locked(upload) as lock:
        here = upload.offset if upload.state == Upload.State.OPEN else upload.length
        if start != here:
            text = _("The next byte must be at offset %(number)s.") % {"number": here}
            raise Refused(409, text, (b"upload-offset", str(here).encode()))
        if start + announced > upload.length:
            raise _more_than_announced(upload)
        end = await _receive(upload, start, checksum, receive, lock.give_way)
        await _in_thread(uploads.arrived, upload)
    return 204, [(b"upload-offset", str(end).encode()), *_expiry(upload)], b""


def _more_than_announced(upload: Upload) -> Refused:
    return Refused(413, _("The upload was announced with %(length)s bytes.") % {"length": upload.length})


async def _receive(
    upload: Upload, start: int, checksum: tuple[Any, bytes] | None, receive: Receive, give_way: asyncio.Event
) -> int:
    """Append the request's bytes; the new offset. What arrived before a cut stays, unless a checksum covers it."""
    digest = checksum[0]() if checksum else None
    receive = paced(receive)
    fd = await asyncio.to_thread(os.open, upload.file, os.O_WRONLY | os.O_CLOEXEC)
    offset, waiting, size = start, [], 0
    verified = checksum is None
    try:
        more = True
        while more:
            message = await _next(receive, give_way)
            more = bool(message.get("more_body"))
            data = message.get("body", b"")
            if data:
                if offset + size + len(data) > upload.length:
                    raise _more_than_announced(upload)
                waiting.append(data)
                size += len(data)
            if size >= BLOCK or (size and not more):
                await asyncio.to_thread(_write, fd, waiting, offset, digest)
                offset, waiting, size = offset + size, [], 0
        if checksum and digest is not None and digest.digest() != checksum[1]:
            raise Refused(460, _("The checksum of the bytes does not match. Send them again."))
        verified = True
        if offset == upload.length:
            await asyncio.to_thread(os.fdatasync, fd)
    finally:
        if verified and size:
            await asyncio.to_thread(_write, fd, waiting, offset, None)
        elif not verified:
            await asyncio.to_thread(os.ftruncate, fd, start)
        os.close(fd)
    return offset


def _write(fd: int, blocks: list[bytes], offset: int, digest: Any) -> None:
    view = memoryview(blocks[0] if len(blocks) == 1 else b"".join(blocks))
    if digest is not None:
        digest.update(view)
    while view:
        written = os.pwrite(fd, view, offset)
        view, offset = view[written:], offset + written


async def _next(receive: Receive, give_way: asyncio.Event) -> dict[str, Any]:
    """Return the next piece of the body.

    Raises:
        ConnectionError: the sender has gone or trickles, or a newer request took over.
    """
    incoming = asyncio.ensure_future(receive())
    release = asyncio.ensure_future(give_way.wait())
    done, pending = await asyncio.wait({incoming, release}, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    if incoming not in done:
        raise ConnectionError
    message = incoming.result()
    if message["type"] == "http.disconnect":
        raise ConnectionError
    return message


class _Locked:
    """Lets one request at a time use an upload, across processes. A newer one in this process takes over."""

    def __init__(self, upload: Upload) -> None:
        self.upload = upload
        self.give_way = asyncio.Event()

    async def __aenter__(self) -> _Locked:
        self.fd = await asyncio.to_thread(self._open)
        for _attempt in range(40):
            try:
                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if older := _receiving.get(self.upload.pk):
                    older.set()
                await asyncio.sleep(0.05)
            else:
                _receiving[self.upload.pk] = self.give_way
                return self
        os.close(self.fd)
        raise Refused(423, _("Another request is writing to this upload."), (b"retry-after", b"1"))

    async def __aexit__(self, *_error: object) -> None:
        if _receiving.get(self.upload.pk) is self.give_way:
            del _receiving[self.upload.pk]
        os.close(self.fd)

    def _open(self) -> int:
        try:
            return os.open(self.upload.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            raise Refused(404, _("This upload does not exist or was deleted.")) from None


def _number(headers: dict[bytes, bytes], name: bytes) -> int:
    raw = headers.get(name, b"")
    if not raw.isdigit() or len(raw) > 19:
        raise Refused(400, _("%(name)s must be an integer number of bytes.") % {"name": name.decode()})
    return int(raw)


def _metadata(raw: bytes) -> dict[str, str]:
    metadata: dict[str, str] = {}
    for pair in raw.decode("latin-1").split(",") if raw else []:
        key, _space, value = pair.strip().partition(" ")
        try:
            metadata[key] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise Refused(400, _("Upload-Metadata must contain base64 of UTF-8 text.")) from None
    return metadata


def _checksum(raw: bytes | None) -> tuple[Any, bytes] | None:
    if raw is None:
        return None
    name, _space, value = raw.decode("latin-1").partition(" ")
    if name not in ALGORITHMS:
        raise Refused(400, _("Supported checksums: %(names)s.") % {"names": ", ".join(ALGORITHMS)})
    try:
        return ALGORITHMS[name], base64.b64decode(value, validate=True)
    except binascii.Error:
        raise Refused(400, _("Upload-Checksum must be base64.")) from None


def _expiry(upload: Upload) -> list[Header]:
    if upload.expires_at is None:
        return []
    return [(b"upload-expires", format_datetime(upload.expires_at, usegmt=True).encode())]
