"""Pass one WebSocket on to a job's server, both ways, until either side ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
from aiohttp import WSCloseCode, web
from yarl import URL

from workers.access.proxy import activity, headers
from workers.access.proxy.connecting import refusing
from workers.access.proxy.headers import Passing
from workers.access.proxy.passing_http import address
from workers.access.proxy.refusals import Refused
from workers.access.proxy.watching import Exchange

MAX_BYTES = 64 * 1024 * 1024
HEARTBEAT_S = 25.0
OWN_CODES = range(3000, 5000)
SENDABLE = {1000, 1001, 1002, 1003, *range(1007, 1015), *OWN_CODES} - {1010}


async def forward(
    session: aiohttp.ClientSession,
    request: web.Request,
    passing: Passing,
    exchange: Exchange,
    on_activity: Callable[[], Awaitable[None]],
) -> web.StreamResponse:
    """Connect to the job's server first, so that the browser receives its refusal and its choice of sub-protocol.

    Args:
        heard: called for what the browser says.

    Raises:
        Refused: before the socket is open.
    """
    request_headers = headers.to_job(headers.pairs(request.raw_headers), passing, client=request.remote or "-")
    offered = [word.strip() for word in request.headers.get("Sec-WebSocket-Protocol", "").split(",") if word.strip()]
    url = URL(f"http://job{address(request, passing)}", encoded=True)
    try:
        with refusing():
            job = await session.ws_connect(
                url, headers=request_headers, protocols=offered, max_msg_size=MAX_BYTES, compress=0, autoclose=False
            )
    except Refused as refused:
        if isinstance(refused.__cause__, aiohttp.WSServerHandshakeError):
            raise Refused("no_socket") from None
        raise
    browser = web.WebSocketResponse(
        protocols=[job.protocol] if job.protocol else [], max_msg_size=MAX_BYTES, compress=False, heartbeat=HEARTBEAT_S
    )
    try:
        await browser.prepare(request)
        await _carry(browser, job, exchange, _activity_listener(activity.Spoken(request.query), on_activity))
    finally:
        await job.close()
    return browser


def _activity_listener(
    detector: activity.Spoken, on_activity: Callable[[], Awaitable[None]]
) -> Callable[[str | bytes], Awaitable[None]]:
    async def hear(data: str | bytes) -> None:
        if detector.is_from_user(data):
            await on_activity()

    return hear


async def _carry(
    browser: web.WebSocketResponse,
    job: aiohttp.ClientWebSocketResponse,
    exchange: Exchange,
    on_message: Callable[[str | bytes], Awaitable[None]],
) -> None:
    """Carry messages until a side ends, or the browser may no longer stay."""
    tasks = [
        asyncio.create_task(_to_job(browser, job, on_message)),
        asyncio.create_task(_to_browser(job, browser)),
        asyncio.create_task(exchange.refused.wait()),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if exchange.refused.is_set():
        await browser.close(code=WSCloseCode.POLICY_VIOLATION)
    elif browser.closed:
        await job.close(code=_sendable(browser.close_code))
    else:
        await browser.close(code=_sendable(job.close_code))


async def _to_job(
    browser: web.WebSocketResponse,
    job: aiohttp.ClientWebSocketResponse,
    on_message: Callable[[str | bytes], Awaitable[None]],
) -> None:
    async for message in browser:
        await on_message(message.data)
        if message.type == aiohttp.WSMsgType.TEXT:
            await job.send_str(message.data)
        elif message.type == aiohttp.WSMsgType.BINARY:
            await job.send_bytes(message.data)


async def _to_browser(job: aiohttp.ClientWebSocketResponse, browser: web.WebSocketResponse) -> None:
    async for message in job:
        if message.type == aiohttp.WSMsgType.TEXT:
            await browser.send_str(message.data)
        elif message.type == aiohttp.WSMsgType.BINARY:
            await browser.send_bytes(message.data)


def _sendable(code: int | None) -> int:
    """A close code that may be sent, as near to the given one as there is."""
    if not code:
        return int(WSCloseCode.OK)
    return code if code in SENDABLE else int(WSCloseCode.INTERNAL_ERROR)
