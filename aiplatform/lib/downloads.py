"""Send files with Range and ETag, so that downloads can be resumed; folders as one zip: `zips`.

Under ASGI Django gathers a synchronous stream in memory before it sends the first byte, a 10 GB model
included; `streamed` therefore answers an ASGI request with an asynchronous one.
"""

from __future__ import annotations

import io
import mimetypes
import os
import re
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import IO
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from aiplatform.lib import tables

BLOCK = 1 << 20
_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")
#: Types a browser may show by itself; everything else is saved, whatever its bytes say.
SHOWN = {"image/png", "image/jpeg", "image/webp", "image/gif", "text/plain", "video/webm"}


def attachment(name: str, *, inline: bool = False) -> str:
    """A Content-Disposition for any name, quotes, newlines and Chinese included."""
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", name) or "file"
    how = "inline" if inline else "attachment"
    return f"{how}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def streamed(request: HttpRequest, blocks: Generator[bytes, None, None]) -> StreamingHttpResponse:
    """Send blocks as they come, in constant memory on WSGI and ASGI alike."""
    return StreamingHttpResponse(_awaited(blocks) if isinstance(request, ASGIRequest) else blocks)


async def _awaited(blocks: Generator[bytes, None, None]) -> AsyncIterator[bytes]:
    following = sync_to_async(lambda: next(blocks, None), thread_sensitive=False)
    try:
        while (block := await following()) is not None:
            yield block
    finally:
        blocks.close()


@dataclass(frozen=True, slots=True)
class Part:
    """The bytes `begin` to `end` of `total` that a request wants."""

    begin: int
    end: int
    total: int

    @property
    def is_empty(self) -> bool:
        return self.begin >= self.end

    def refusal(self) -> HttpResponse:
        """The answer to a part that is not there."""
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{self.total}"})


def requested_part(request: HttpRequest, etag: str, total: int) -> Part | None:
    """The part that `Range` asks for; None for the whole, also where `If-Range` names other bytes than `etag`."""
    requested = _RANGE.match(request.headers.get("Range", ""))
    if not requested or not (requested[1] or requested[2]) or request.headers.get("If-Range", etag) != etag:
        return None
    if not requested[1]:
        return Part(max(total - int(requested[2]), 0), total, total)
    return Part(int(requested[1]), min(int(requested[2]) + 1, total) if requested[2] else total, total)


def _set_range_headers(response: HttpResponseBase, part: Part | None, etag: str, total: int) -> None:
    """State which bytes a response holds, and that ranges are accepted."""
    response.status_code = 206 if part else 200
    if part:
        response["Content-Range"] = f"bytes {part.begin}-{part.end - 1}/{total}"
    response["Content-Length"] = str(part.end - part.begin if part else total)
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = etag


def send_parts(
    request: HttpRequest, name: str, kind: str, etag: str, total: int, made: Callable[[int, int], Generator[bytes]]
) -> HttpResponseBase:
    """Send bytes that are made while they are sent and are the same each time, or the part that `Range` requests.

    Args:
        etag: changes when the bytes do, in quotes.
        made: gives the bytes from the first number to the second.
    """
    part = requested_part(request, etag, total)
    if part and part.is_empty:
        return part.refusal()
    response = streamed(request, made(part.begin, part.end) if part else made(0, total))
    _set_range_headers(response, part, etag, total)
    response["Content-Type"] = kind
    response["Content-Disposition"] = attachment(name)
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


def send_file(request: HttpRequest, descriptor: int, name: str, *, inline: bool = False) -> HttpResponseBase:
    """Send an open file, or the part of it that `Range` requests.

    Args:
        descriptor: of a regular file (see `files.open_beneath`); closed with the response.
        name: what the file is called at the reader's.
        inline: let the browser show it, where its type is harmless.
    """
    info = os.fstat(descriptor)
    etag = f'"{info.st_mtime_ns:x}-{info.st_size:x}-{info.st_ino:x}"'
    file = os.fdopen(descriptor, "rb")
    part = requested_part(request, etag, info.st_size)
    if part and part.is_empty:
        file.close()
        return part.refusal()
    begin, end = (part.begin, part.end) if part else (0, info.st_size)
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    shown = inline and kind in SHOWN
    response = streamed(request, _slice(file, begin, end))
    # an unread body never reaches its own `with`
    response._resource_closers.append(file.close)  # type: ignore[attr-defined]  # Django's own list of what to close, without a public name
    _set_range_headers(response, part, etag, info.st_size)
    response["Content-Type"] = kind if shown or kind == "application/json" else "application/octet-stream"
    response["Content-Disposition"] = attachment(name, inline=shown)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["Cache-Control"] = "private, no-store"
    return response


def send_made(
    request: HttpRequest, descriptor: int, made: Callable[[IO[bytes]], Generator[bytes]], name: str, kind: str
) -> HttpResponseBase:
    """Send what `made` makes of an open file while it is sent, as a download called `name` of the type `kind`.

    Args:
        descriptor: of a regular file (see `files.open_beneath`); closed with the response.
    """
    file = os.fdopen(descriptor, "rb")
    response = streamed(request, made(file))
    response._resource_closers.append(file.close)  # type: ignore[attr-defined]  # as in send_file
    response["Content-Type"] = kind
    response["Content-Disposition"] = attachment(name)
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


def _slice(file: IO[bytes], begin: int, end: int) -> Generator[bytes, None, None]:
    with file as source:
        source.seek(begin)
        left = end - begin
        while left > 0 and (block := source.read(min(BLOCK, left))):
            left -= len(block)
            yield block


def csv_answer(name: str, header: Sequence[object], rows: Iterable[Sequence[object]]) -> HttpResponse:
    """A download called `name` (ASCII, ends in .csv) with one line per row."""
    out = io.StringIO()
    out.write(tables.BOM)
    tables.write_csv(out, header, rows)
    return HttpResponse(
        out.getvalue(),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
