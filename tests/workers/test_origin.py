"""The origin of jobs' ports: what passes between a browser and a program in a job."""

import asyncio
import io
from datetime import timedelta

import aiohttp
import pytest
from asgiref.sync import sync_to_async
from django.utils.timezone import now

from tests.factories import work
from tests.workers.origin_served import HOSTILE, serving, session_of
from workers.access.proxy import activity, published_ports
from workers.access.proxy.models import PublishedPort

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("an origin and a server of its own")]


@pytest.fixture
def job(alice, cluster):
    return work.job(alice, cluster, state="running")


@pytest.fixture
def web(job, alice):
    return published_ports.publish(job, port=40_000, by=alice, name="web")


@pytest.fixture
def key(alice):
    return session_of(alice)


async def test_origin_passes_requests_to_the_path_below_the_port(web, key, job):
    async with serving() as served:
        cookie = await served.enter(web, key)

        async with served.client.post(
            f"{served.url}/jobs/{job.pk}/web/a%2Fb/../c?x=1&y=%20", headers={"Cookie": cookie}, data=b"12345"
        ) as answer:
            text = await answer.text()

    assert (answer.status, text) == (200, "inside")
    method, path, heard, size = served.job.heard[0]
    assert (method, size) == ("POST", 5)
    assert not path.startswith("/jobs")
    assert path.endswith("?x=1&y=%20")
    assert heard["Host"] == served.host
    assert heard["X-Forwarded-Prefix"] == f"/jobs/{job.pk}/web"


async def test_origin_keeps_the_platforms_cookies_and_tokens_from_the_job(web, key, job):
    async with serving() as served:
        cookie = await served.enter(web, key)
        held = f"sessionid=s; csrftoken=c; django_language=en; other_tool=x; {cookie}; __Host-session=h"
        headers = {"Cookie": held, "X-Forwarded-For": "6.6.6.6", "X-Aip-User": "root", "X-CSRFToken": "c"}

        await served.client.get(f"{served.url}/jobs/{job.pk}/web/", headers=headers)

    heard = served.job.heard[0][2]
    assert "Cookie" not in heard
    assert heard["X-Forwarded-For"] == "127.0.0.1"
    assert not {"X-Aip-User", "X-Csrftoken", "Authorization"} & set(heard)


async def test_i04_origin_drops_what_a_job_says_beyond_its_own_path(web, key, job):
    async with serving() as served:
        cookie = await served.enter(web, key)
        served.job.cookies = [
            "theme=dark; Path=/; Domain=example.org",
            "deep=1; Path=/static",
            "sessionid=tossed; Path=/",
            "csrftoken=tossed",
            "aip-port-9-web=tossed",
            "__Host-session=tossed; Path=/; Secure",
        ]

        async with served.client.get(f"{served.url}/jobs/{job.pk}/web/", headers={"Cookie": cookie}) as answer:
            told = answer.headers

    assert not set(HOSTILE) & set(told)
    assert told.getall("Set-Cookie") == [
        f"theme=dark; Path=/jobs/{job.pk}/web/",
        f"deep=1; Path=/jobs/{job.pk}/web/static",
    ]
    assert told["Cache-Control"] == "private"


async def test_origin_returns_to_the_job_only_cookies_its_server_set(web, key, job):
    async with serving() as served:
        cookie = await served.enter(web, key)
        served.job.cookies = ["theme=dark"]
        url = f"{served.url}/jobs/{job.pk}/web/"
        await served.client.get(url, headers={"Cookie": cookie})

        await served.client.get(url, headers={"Cookie": f"{cookie}; theme=dark; grafana_session=secret"})

    assert served.job.heard[1][2]["Cookie"] == "theme=dark"
    assert (await sync_to_async(PublishedPort.objects.get)(pk=web.pk)).cookie_names == ["theme"]


@pytest.mark.parametrize(
    ("location", "led"),
    [
        ("/login?next=/", "/jobs/{job}/web/login?next=/"),
        ("next", "/jobs/{job}/web/deep/next"),
        ("http://127.0.0.1:40000/x", "/jobs/{job}/web/x"),
        ("http://localhost:40000", "/jobs/{job}/web/"),
        ("/jobs/{job}/web/known", "/jobs/{job}/web/known"),
        ("https://example.org/away", "https://example.org/away"),
        ("http://169.254.169.254/latest/meta-data", None),
        ("http://127.0.0.1:6379/", None),
        ("http://[", None),
        ("http://example.org:x/", None),
        ("http://2130706433/", None),
        ("http://[::ffff:127.0.0.1]:22/", None),
        ("http://broker/", None),
        ("//10.0.0.1/x", None),
        ("javascript:alert(1)", None),
        ("file:///etc/passwd", None),
    ],
)
async def test_i04_origin_neither_follows_nor_passes_redirects_inside(web, key, job, location, led):
    async with serving() as served:
        cookie = await served.enter(web, key)
        served.job.said = {"/deep/from": location.replace("{job}", str(job.pk))}

        async with served.client.get(
            f"{served.url}/jobs/{job.pk}/web/deep/from", headers={"Cookie": cookie}, allow_redirects=False
        ) as answer:
            status, where = answer.status, answer.headers.get("Location")

    expected = (302, led.replace("{job}", str(job.pk))) if led else (502, None)
    assert (status, where) == expected
    assert len(served.job.heard) == 1


async def test_origin_carries_32_mib_both_ways(web, key, job):
    async with serving() as served:
        cookie = {"Cookie": await served.enter(web, key)}

        async with served.client.get(f"{served.url}/jobs/{job.pk}/web/large", headers=cookie) as answer:
            down = len(await answer.read())
        async with served.client.put(
            f"{served.url}/jobs/{job.pk}/web/", headers=cookie, data=io.BytesIO(bytes(32 << 20))
        ) as answer:
            await answer.read()

    assert down == 32 << 20
    assert served.job.heard[-1][3] == 32 << 20


async def test_origin_streams_events_as_they_come(web, key, job):
    async with serving() as served:
        cookie = {"Cookie": await served.enter(web, key)}

        async with served.client.get(f"{served.url}/jobs/{job.pk}/web/stream", headers=cookie) as answer:
            first = await answer.content.readuntil(b"\n\n")

    assert (first, answer.headers["Content-Type"]) == (b"data: 0\n\n", "text/event-stream")


async def test_origin_does_not_pass_half_an_answer_for_a_whole_one(web, key, job):
    async with serving() as served:
        cookie = {"Cookie": await served.enter(web, key)}

        async with served.client.get(f"{served.url}/jobs/{job.pk}/web/breaks", headers=cookie) as answer:
            with pytest.raises(aiohttp.ClientError):
                await answer.read()


async def test_origin_socket_keeps_its_sub_protocol_and_close_code(web, key, job):
    async with serving() as served:
        headers = {"Cookie": await served.enter(web, key), "Origin": served.url}
        url = f"{served.url}/jobs/{job.pk}/web/ws"

        async with served.client.ws_connect(
            url, headers=headers, protocols=["v0", "v1.kernel"], max_msg_size=0
        ) as socket:
            await socket.send_str("hello")
            text = await socket.receive_str(timeout=20)
            await socket.send_bytes(bytes(5 << 20))
            size = len(await socket.receive_bytes(timeout=20))
            await socket.send_str("end")
            await socket.receive(timeout=20)

    assert (socket.protocol, text, size, socket.close_code) == ("v1.kernel", "hello", 5 << 20, 4001)


async def test_origin_holds_100_sockets(web, key, job):
    async with serving() as served:
        headers = {"Cookie": await served.enter(web, key), "Origin": served.url}
        url = f"{served.url}/jobs/{job.pk}/web/ws"

        sockets = await asyncio.gather(*(served.client.ws_connect(url, headers=headers) for _ in range(100)))
        await asyncio.gather(*(socket.send_str(str(n)) for n, socket in enumerate(sockets)))
        said = await asyncio.gather(*(socket.receive_str(timeout=30) for socket in sockets))
        open_at_once = served.job.sockets
        await asyncio.gather(*(socket.close() for socket in sockets))

    assert said == [str(n) for n in range(100)]
    assert open_at_once == 100


async def test_origin_leaves_no_socket_to_the_job_when_the_browser_is_gone(web, key, job):
    async with serving() as served:
        headers = {"Cookie": await served.enter(web, key), "Origin": served.url}
        socket = await served.client.ws_connect(f"{served.url}/jobs/{job.pk}/web/ws", headers=headers)
        await socket.send_str("hello")
        await socket.receive_str(timeout=20)

        socket._response.connection.transport.abort()

        async with asyncio.timeout(20):
            while served.job.sockets:
                await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("method", "mode", "counts"),
    [("GET", "navigate", True), ("GET", "cors", False), ("POST", "cors", True), ("HEAD", "", False)],
)
async def test_activity_counts_what_people_do_and_not_what_tabs_ask(web, key, job, method, mode, counts):
    async with serving() as served:
        headers = {"Cookie": await served.enter(web, key), "Sec-Fetch-Mode": mode}

        await served.client.request(method, f"{served.url}/jobs/{job.pk}/web/api/kernels", headers=headers)

    last = await sync_to_async(activity.last_request)(job)
    assert (last is not None) == counts
    assert last is None or now() - last < timedelta(minutes=1)


async def test_activity_counts_what_a_browser_says_over_a_socket(web, key, job):
    async with serving() as served:
        headers = {"Cookie": await served.enter(web, key), "Origin": served.url}
        async with served.client.ws_connect(f"{served.url}/jobs/{job.pk}/web/ws", headers=headers) as socket:
            await socket.send_str("3")  # keeps alive, says nothing
            await socket.receive_str(timeout=20)
            silent = await sync_to_async(activity.last_request)(job)
            await socket.send_str('["stdin", "ls"]')
            await socket.receive_str(timeout=20)

    assert silent is None
    assert await sync_to_async(activity.last_request)(job) is not None


async def test_origin_keeps_bytes_of_headers_and_paths(web, key, job):
    async with serving() as served:
        cookie = await served.enter(web, key)
        reader, writer = await asyncio.open_connection("127.0.0.1", int(served.host.partition(":")[2]))
        head = f"GET /jobs/{job.pk}/web/%E5%9B%BE/raw?x=%E5%9B%BE".encode() + b" HTTP/1.1\r\nX-Name: \xff\r\n"
        writer.write(head + f"Host: {served.host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()

    method, path, heard, _size = served.job.heard[0]
    assert (method, path) == ("GET", "/%E5%9B%BE/raw?x=%E5%9B%BE")
    assert heard["X-Name"] == "\xff"
    assert answer.startswith(b"HTTP/1.1 206 ")
    assert b"attachment; filename=\xe5\x9b\xbe.png\r\n" in answer
    assert b"Content-Range: bytes 0-1/4" in answer.replace(b"content-range", b"Content-Range")
    assert answer.endswith(b"\r\n\r\nab")


async def test_origin_answers_head_and_leads_to_the_slash(web, key, job):
    async with serving() as served:
        headers = {"Cookie": await served.enter(web, key)}

        async with served.client.head(f"{served.url}/jobs/{job.pk}/web/", headers=headers) as head:
            length = head.headers["Content-Length"]
        async with served.client.get(f"{served.url}/jobs/{job.pk}/web?a=1", allow_redirects=False) as bare:
            led = bare.status, bare.headers["Location"]

    assert (head.status, length) == (200, "6")
    assert led == (308, f"/jobs/{job.pk}/web/?a=1")
