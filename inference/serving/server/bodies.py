"""Read request bodies, with limits on size and slowness."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from inference.kit.model_io.refusals import BadRequest, Gone, TooLarge, TooSlow

TIMEOUT_S = 4.0
SLOWEST_BYTES_PER_S = 16 * 1024


async def read(request: Request, *, limit: int) -> bytes:
    """The whole body.

    Raises:
        TooLarge: more than `limit` bytes are announced or arrive.
        TooSlow: 4 s and 16 KiB/s were not met, so one caller cannot hold a place forever.
        Gone: the caller disconnected.
    """
    headers = request.headers
    if headers.get("content-encoding", "identity") != "identity":
        raise BadRequest("Send the body as it is; compressed bodies are not accepted.")
    announced = headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    got, started = 0, asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout_at(started + TIMEOUT_S) as patience:
            async for chunk in request.stream():
                chunks.append(chunk)
                got += len(chunk)
                if got > limit:
                    raise _too_large(limit)
                patience.reschedule(started + TIMEOUT_S + got / SLOWEST_BYTES_PER_S)
    except TimeoutError:
        raise TooSlow("The body came too slowly.") from None
    except ClientDisconnect:
        raise Gone("The caller hung up.") from None
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"At most {limit >> 20} MiB are accepted.")


async def picture(headers: Headers, body: bytes) -> bytes:
    """Return the image of a body: its only file where it is a form, else the body itself.

    Raises:
        BadRequest: the body is empty, or a form without a file.
    """
    if headers.get("content-type", "").lower().startswith("multipart/form-data"):
        body = await _only_file(headers, body)
    if not body:
        raise BadRequest("Send a picture: as the body, or as a file field of a form.")
    return body


async def _only_file(headers: Headers, body: bytes) -> bytes:
    async def once() -> AsyncGenerator[bytes, None]:
        yield body

    parser = MultiPartParser(headers, once(), max_files=1, max_fields=16)
    parser.spool_max_size = len(body) + 1  # never touch the disk
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError, AssertionError) as exc:
        raise BadRequest(f"The form cannot be read: {exc}") from None
    try:
        files = [value for value in form.values() if isinstance(value, UploadFile)]
        return await files[0].read() if files else b""
    finally:
        await form.close()
