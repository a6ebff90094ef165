"""Copies of requests for a shadow: never more at once than have a place."""

import asyncio

from workers.access.proxy import request_copies
from workers.access.proxy.forwarding import Copy, Upstream
from workers.access.proxy.request_copies import Copier, Watched


class Slow:
    """A forwarder whose server takes its time."""

    def __init__(self):
        self.now = self.most = self.done = 0
        self.go_on = asyncio.Event()

    async def forward(self, scope, receive, send, upstream, path):
        self.now += 1
        self.most = max(self.most, self.now)
        assert (await receive())["body"] == b"picture"
        await self.go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"other"})
        self.now, self.done = self.now - 1, self.done + 1


def test_requests_beyond_the_places_are_not_copied_and_places_come_back():
    compared = []

    async def compare(request, response, other):
        compared.append((request, response, other))

    async def main():
        server = Slow()
        copier = Copier(server)
        copy = Copy(Upstream("127.0.0.1", 1), compare)
        taken = 0
        for _number in range(10):
            if not copier.acquire():
                continue
            taken += 1
            call = Watched(None, None, keep=True)
            call.asked += b"picture"
            call.answered += b"given"
            call.status = 200
            copier.start({}, "predict", copy, call)
        await asyncio.sleep(0)
        server.go_on.set()
        await copier.end()
        await asyncio.sleep(0)
        assert (taken, server.most, server.done) == (request_copies.AT_ONCE,) * 3
        assert copier.acquire()
        copier.give_back()

    asyncio.run(main())

    assert compared == [(b"picture", b"given", b"other")] * request_copies.AT_ONCE
