"""Requests that no browser sends, at the origin of jobs' ports: smuggled, huge, half, and none at all."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.factories import work
from tests.workers.origin_served import serving, session_of
from workers.access.proxy import origin, published_ports

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("an origin and a server of its own")]
BEHIND = b"0\r\n\r\nGET /jobs/1/web/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
SMUGGLED = {
    "length and chunks": (b"Content-Length: 5\r\nTransfer-Encoding: chunked", BEHIND),
    "two lengths": (b"Content-Length: 0\r\nContent-Length: 61", BEHIND),
    "chunks, or not": (b"Transfer-Encoding: chunked, identity", BEHIND),
    "chunks by another name": (b"Transfer-Encoding: xchunked", BEHIND),
    "blank before the colon": (b"Content-Length : 5", BEHIND),
    "signed length": (b"Content-Length: +5", b"hello"),
    "folded line": (b"A: b\r\n Content-Length: 5", b"hello"),
    "line within a line": (b"A: b\rContent-Length: 5", b"hello"),
    "NUL": (b"A: b\0c", b""),
    "two hosts": (b"Host: evil", b""),
    "huge header": (b"A: " + b"x" * 40_000, b""),
    "many headers": (b"\r\n".join(b"A%d: x" % number for number in range(5000)), b""),
}


@pytest.fixture
def job(alice, cluster):
    return work.job(alice, cluster, state="running")


@pytest.fixture
def web(job, alice):
    return published_ports.publish(job, port=40_000, by=alice, name="web")


@pytest.fixture
def key(alice):
    return session_of(alice)


async def say(served, data, *, within_s=20.0):
    """What the origin answers to these bytes until it closes, or has answered once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(served.host.rpartition(":")[2]))
    writer.write(data)
    try:
        async with asyncio.timeout(within_s):
            return await reader.read(65536)
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("smuggled", SMUGGLED)
async def test_i04_request_with_two_meanings_is_refused_and_written_nowhere(smuggled, web, key, job, caplog):
    header, rest = SMUGGLED[smuggled]
    caplog.set_level(logging.DEBUG)
    async with serving() as served:
        cookie = await served.enter(web, key)
        head = f"POST /jobs/{job.pk}/web/ HTTP/1.1\r\nHost: {served.host}\r\nCookie: {cookie}\r\n".encode()

        answer = await say(served, head + header + b"\r\n\r\n" + rest)

        assert answer.split(b" ", 2)[1] == b"400"
        assert served.job.heard == []
    assert cookie.partition("=")[2] not in caplog.text


@pytest.mark.parametrize(
    "torn", ["GET /jobs/{job}/web/_enter?ticket={ticket}\n HTTP/1.1\r\n\r\n",
             "GET / HTTP/1.1\r\nAuthorization: Bearer {ticket}\0\r\n\r\n",
             "GET / HTTP/1.1\r\nCookie: aip-port-{job}-web={ticket}\x7f\r\nA\r\n\r\n"],
)  # fmt: skip
async def test_k05_secrets_of_torn_requests_are_not_logged(torn, web, job, caplog):
    caplog.set_level(logging.DEBUG)
    async with serving() as served:
        answer = await say(served, torn.format(job=job.pk, ticket="open-sesame").encode())

    assert b" 400 " in answer
    assert "open-sesame" not in caplog.text


async def test_i01_whole_addresses_and_tunnels_lead_nowhere(web, key, job):
    async with serving() as served:
        cookie = (await served.enter(web, key)).encode()
        inner = f"http://169.254.169.254/jobs/{job.pk}/web/".encode()
        for first in (b"GET " + inner, b"CONNECT 10.0.0.1:80", b"GET http://[::1]:6379/"):
            request = b"%s HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nConnection: close\r\n\r\n"
            answer = await say(served, request % (first, served.host.encode(), cookie))
            assert answer.split(b" ", 2)[1] in {b"400", b"403", b"404"}, first

        assert served.job.heard == []


@pytest.mark.parametrize("half", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nA: "])
async def test_g05_connections_that_say_nothing_or_half_are_closed(half, web, key, job, monkeypatch):
    monkeypatch.setattr(origin, "IDLE_TIMEOUT_S", 0.3)
    async with serving() as served:
        cookie = await served.enter(web, key)
        slow = [asyncio.create_task(say(served, half)) for _ in range(200)]
        async with served.client.get(f"{served.url}/jobs/{job.pk}/web/", headers={"Cookie": cookie}) as answer:
            assert answer.status == 200

        assert set(await asyncio.gather(*slow)) == {b""}
