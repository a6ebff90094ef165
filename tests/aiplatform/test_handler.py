"""The handler of pages and API, called as a web server calls it."""

from __future__ import annotations

import asyncio

from django.http import StreamingHttpResponse
from django.urls import path

from aiplatform.web.handler import Handler

SCOPE = {"type": "http", "method": "GET", "path": "/numbers", "headers": [], "query_string": b"", "http_version": "1.1"}


async def _numbers():
    for number in range(3):
        yield b"%d" % number
        await asyncio.sleep(0)


urlpatterns = [path("numbers", lambda _request: StreamingHttpResponse(_numbers()))]


class Never:
    """An awaitable that is no coroutine, as granian's `receive` may return while nothing is there to receive."""

    def __await__(self):
        return asyncio.get_running_loop().create_future().__await__()


def test_handler_streams_to_a_server_whose_receive_is_no_coroutine(settings):
    settings.ROOT_URLCONF, settings.MIDDLEWARE = __name__, []
    sent = []

    async def begun():
        return {"type": "http.request", "body": b"", "more_body": False}

    coming = iter([begun()])

    async def keep(message):
        sent.append(message)

    async def one_request():
        handler = Handler()
        handler.load_middleware()
        await handler(SCOPE, lambda: next(coming, None) or Never(), keep)

    asyncio.run(one_request())

    assert sent[0]["status"] == 200
    assert b"".join(message.get("body", b"") for message in sent) == b"012"
