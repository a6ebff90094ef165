"""Pass one HTTP request on to a job's server, and its answer back as it comes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection

import aiohttp
from aiohttp import web
from yarl import URL

from workers.access.proxy import headers
from workers.access.proxy.connecting import refusing
from workers.access.proxy.headers import Passing
from workers.access.proxy.refusals import Refused
from workers.access.proxy.watching import Exchange

FORBIDDEN = {"CONNECT", "TRACE"}


def address(request: web.Request, passing: Passing) -> str:
    """Path and query as the job's server knows them."""
    raw = request.raw_path
    return "/" + raw.removeprefix(passing.mount) if passing.strips else raw


async def forward(
    session: aiohttp.ClientSession,
    request: web.Request,
    passing: Passing,
    exchange: Exchange,
    learn: Callable[[Collection[str]], Awaitable[None]],
) -> web.StreamResponse:
    """Respond with the response of the job's server.

    Args:
        learn: called with the names of cookies that the job's server sets and that were not known.

    Raises:
        Refused: before anything was answered.
    """
    if request.method in FORBIDDEN:
        raise Refused("method_not_allowed")
    target = address(request, passing)
    request_headers = headers.to_job(headers.pairs(request.raw_headers), passing, client=request.remote or "-")
    body = None
    if request.body_exists:
        body = _chunks(request)
        length = request.headers.get("Content-Length")
        request_headers += [("content-length", length)] if length else []
    url = URL(f"http://job{target}", encoded=True)
    with refusing():
        answer = await session.request(request.method, url, headers=request_headers, data=body, allow_redirects=False)
    async with answer:
        response_headers = headers.pairs(answer.raw_headers)
        try:
            shown = headers.to_browser(response_headers, passing, target=target, status=answer.status)
        except headers.PointsInside:
            raise Refused("points_inside") from None
        if new := headers.new_cookies(shown, passing):
            await learn(new)
        return await _answer(answer, shown, request, exchange)


async def _answer(
    answer: aiohttp.ClientResponse, shown: list[tuple[str, str]], request: web.Request, exchange: Exchange
) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, reason=answer.reason)
    for name, value in shown:
        response.headers.add(name, value)
    response.headers["Server"] = "aiplatform"
    await response.prepare(request)
    try:
        async for chunk in answer.content.iter_any():
            if exchange.refused.is_set():
                exchange.break_off()
                break
            await response.write(chunk)
        else:
            await response.write_eof()
    except (aiohttp.ClientError, TimeoutError):  # the browser must not take a part for the whole
        exchange.break_off()
    return response


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    async for chunk in request.content.iter_any():
        yield chunk
