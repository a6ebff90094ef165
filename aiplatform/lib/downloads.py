"""Send files with Range and ETag, so that downloads can be resumed, and folders as one zip stream.

Under ASGI Django gathers a synchronous stream in memory before it sends the first byte, a 10 GB model
included; `streamed` therefore answers an ASGI request with an asynchronous one.
"""

from __future__ import annotations

import mimetypes
import os
import re
import struct
import zlib
from collections.abc import AsyncIterator, Generator, Sequence
from pathlib import Path
from typing import IO
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from aiplatform.lib import times
from aiplatform.lib.files import OutsideRoot, open_beneath

BLOCK = 1 << 20
_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")
#: Types a browser may show by itself; everything else is saved, whatever its bytes say.
SHOWN = {"image/png", "image/jpeg", "image/webp", "image/gif", "text/plain"}


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
    begin, end = 0, info.st_size
    requested = _RANGE.match(request.headers.get("Range", ""))
    same = request.headers.get("If-Range", etag) == etag
    part = bool(requested and same and (requested[1] or requested[2]))
    if part and requested:
        if requested[1]:
            begin = int(requested[1])
            end = min(int(requested[2]) + 1, end) if requested[2] else end
        else:
            begin = max(end - int(requested[2]), 0)
        if begin >= end:
            file.close()
            return HttpResponse(status=416, headers={"Content-Range": f"bytes */{info.st_size}"})
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    shown = inline and kind in SHOWN
    response = streamed(request, _slice(file, begin, end))
    # a body nobody reads never reaches its own `with`
    response._resource_closers.append(file.close)  # type: ignore[attr-defined]  # Django's own list of what to close, without a public name
    response.status_code = 206 if part else 200
    if part:
        response["Content-Range"] = f"bytes {begin}-{end - 1}/{info.st_size}"
    response["Content-Type"] = kind if shown or kind == "application/json" else "application/octet-stream"
    response["Content-Length"] = str(end - begin)
    response["Content-Disposition"] = attachment(name, inline=shown)
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = etag
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["Cache-Control"] = "private, no-store"
    return response


def _slice(file: IO[bytes], begin: int, end: int) -> Generator[bytes, None, None]:
    with file as source:
        source.seek(begin)
        left = end - begin
        while left > 0 and (block := source.read(min(BLOCK, left))):
            left -= len(block)
            yield block


def send_zip(request: HttpRequest, files: Sequence[tuple[str, Path, str]], name: str) -> StreamingHttpResponse:
    """Send a zip of `files` (name inside, root, path below it), made while it is sent: no temporary file."""
    response = streamed(request, zip_stream(files))
    response["Content-Type"] = "application/zip"
    response["Content-Disposition"] = attachment(name)
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


def zip_stream(files: Sequence[tuple[str, Path, str]]) -> Generator[bytes, None, None]:
    """The bytes of a zip (stored, zip64) of files (name inside, root, path below it), read one after the other.

    No link below a root is followed, not even one that took a folder's place while the zip was sent; a file
    that vanished meanwhile is left out.
    """
    at = 0
    entries: list[bytes] = []
    for inside, root, path in files:
        try:
            descriptor = open_beneath(root, path)
        except (OSError, OutsideRoot):
            continue
        with os.fdopen(descriptor, "rb") as source:
            name = inside.encode()
            stamp = _dos_time(os.fstat(descriptor).st_mtime)
            begin = at
            # bit 3: sizes follow the data; bit 11: the name is UTF-8
            head = struct.pack("<IHHHIIIIHH", 0x04034B50, 45, 0x808, 0, stamp, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(name), 20)
            head += name + struct.pack("<HHQQ", 1, 16, 0, 0)
            yield head
            at += len(head)
            crc, size = 0, 0
            while block := source.read(BLOCK):
                crc = zlib.crc32(block, crc)
                size += len(block)
                yield block
            tail = struct.pack("<IIQQ", 0x08074B50, crc, size, size)
            yield tail
            at += size + len(tail)
        extra = struct.pack("<HHQQQ", 1, 24, size, size, begin)
        entries.append(
            struct.pack(
                "<IHHHHIIIIHHHHHII",
                *(0x02014B50, 45 | 3 << 8, 45, 0x808, 0, stamp, crc, 0xFFFFFFFF, 0xFFFFFFFF),
                *(len(name), len(extra), 0, 0, 0, 0o100644 << 16, 0xFFFFFFFF),
            )
            + name
            + extra
        )
    listing = b"".join(entries)
    count, size = len(entries), len(listing)
    yield listing
    yield struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, size, at)
    yield struct.pack("<IIQI", 0x07064B50, 0, at + size, 1)
    few = min(count, 0xFFFF)
    yield struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, few, few, min(size, 0xFFFFFFFF), min(at, 0xFFFFFFFF), 0)


def _dos_time(moment: float) -> int:
    """Date and time as a zip writes them: two-second steps since 1980, in one 32-bit number."""
    when = times.moment(moment)
    year = min(max(when.year - 1980, 0), 127)
    return (
        (year << 25)
        | (when.month << 21)
        | (when.day << 16)
        | (when.hour << 11)
        | (when.minute << 5)
        | (when.second // 2)
    )
