"""The web server: requests share a few threads and their database connections, and a process that dies is replaced."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import subprocess
import threading
from contextlib import suppress

import pytest
from django.contrib.auth.decorators import login_not_required
from django.db.backends.signals import connection_created
from django.http import HttpResponse, StreamingHttpResponse
from django.test import override_settings
from django.urls import include, path
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from aiplatform.cli import up, web
from aiplatform.web import handler
from tests.running import HERE, free_port, wait_for

closed = threading.Event()
threads: set[str] = set()


class Endless:
    """A stream that says when it is closed."""

    def __aiter__(self):
        return self

    async def __anext__(self):
        await asyncio.sleep(0)
        return b"x" * 1000


@login_not_required
def endless(request):
    answer = StreamingHttpResponse(Endless())
    answer._resource_closers.append(closed.set)
    return answer


@login_not_required
def who(request):
    from accounts.models import User

    threads.add(threading.current_thread().name)
    return HttpResponse(f"{User.objects.count()} {request.body.decode()}")


urlpatterns = [path("endless/", endless), path("who/", who), path("", include("aiplatform.urls"))]


def scope(address: str, method: str = "GET") -> dict:
    return {"type": "http", "method": method, "path": address, "query_string": b"", "scheme": "http",
            "headers": [(b"host", b"testserver")], "client": ["10.0.0.9", 1], "server": ["testserver", 80]}  # fmt: skip


async def asked(app, address, *, body=b"", gone_after=None):
    """What the application sends for one request; the caller hangs up after so many messages."""
    said: list[dict] = []
    given = [{"type": "http.request", "body": body, "more_body": False}]
    hung_up = asyncio.Event()

    async def receive():
        if given:
            return given.pop()
        await hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        said.append(message)
        if gone_after is not None and len(said) >= gone_after:
            hung_up.set()

    await asyncio.wait_for(app(scope(address, "POST" if body else "GET"), receive, send), 60)
    return said


@pytest.mark.django_db(transaction=True)
@override_settings(ROOT_URLCONF=__name__)
def test_web_requests_share_a_few_threads_and_connections():
    made = []
    connection_created.connect(lambda connection, **_more: made.append(connection), weak=False, dispatch_uid="counted")
    app = handler.Handler()
    threads.clear()

    async def many():
        return [said for _ in range(5) for said in await asyncio.gather(*(asked(app, "/who/") for _ in range(10)))]

    try:
        answers = asyncio.run(many())
    finally:
        connection_created.disconnect(dispatch_uid="counted")
        app._threads.shutdown()

    assert {said[0]["status"] for said in answers} == {200}
    assert len(answers) == 50
    assert 1 <= len(threads) <= handler.THREADS
    assert len(made) <= handler.THREADS


@pytest.mark.django_db(transaction=True)
@override_settings(ROOT_URLCONF=__name__)
def test_web_request_gives_its_body_and_a_stream_ends_with_its_caller():
    app = handler.Handler()
    closed.clear()

    async def both():
        posted = await asked(app, "/who/", body=b"hello")
        streamed = await asked(app, "/endless/", gone_after=5)
        return posted, streamed, await asked(app, "/who/")

    posted, streamed, after = asyncio.run(both())
    app._threads.shutdown()

    assert posted[0]["status"] in {200, 403}
    assert len(streamed) >= 5
    assert closed.is_set()
    assert after[0]["status"] == 200


def test_web_workers_are_one_per_core_and_four_at_most(monkeypatch):
    for cores, expected in ((1, 1), (2, 2), (4, 4), (64, 4)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid, cores=cores: set(range(cores)))
        assert web.workers() == expected
    monkeypatch.setattr(web.env, "WEB_WORKERS", 3)
    assert web.workers() == 3


@pytest.mark.sockets("a port of its own")
async def test_up_waits_for_a_port_that_is_about_to_be_freed(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        options = argparse.Namespace(host="127.0.0.1", port=port)
        asyncio.get_running_loop().call_later(0.2, held.close)

        listener = await up._listen(options)

    assert listener is not None
    with listener:
        monkeypatch.setattr(up, "PORT_WAIT_S", 0.0)
        assert await up._listen(options) is None
    assert f"manage.py up --port {port + 1}" in capsys.readouterr().out


@pytest.fixture(scope="module")
def plain_server():
    """Port of a web server with the smallest application, which gives a head half a second to arrive."""
    port = free_port()
    command = [*web.command("127.0.0.1", port, "tests.fakes.plain_web:application"), "--header-timeout", "0.5"]
    server = subprocess.Popen(command, cwd=HERE, start_new_session=True)

    def listens():
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 20):
            return True

    try:
        wait_for(listens, 30, "the web server does not listen")
        yield port
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@pytest.mark.sockets("a web server of its own")
def test_web_connection_that_says_nothing_is_closed(plain_server):
    with socket.create_connection(("127.0.0.1", plain_server), 20) as silent:
        assert silent.recv(1) == b""


@pytest.mark.sockets("a web server of its own")
def test_B07_web_server_closes_a_socket_whose_browser_says_nothing(plain_server):
    with connect(f"ws://127.0.0.1:{plain_server}/") as viewer, pytest.raises(ConnectionClosed) as closed:
        viewer.recv(20)

    assert closed.value.rcvd.code == 4404


def test_web_connections_leave_files_to_open(monkeypatch):
    for files, expected in ((1024, 512), (1 << 20, web.MAX_CONNECTIONS), (64, 128)):
        monkeypatch.setattr(web.resource, "getrlimit", lambda _which, files=files: (files, files))
        assert web.connections() == expected


@pytest.mark.django_db
def test_address_that_only_takes_forms_says_so_to_who_comes_without_one(as_alice):
    page = as_alice.get("/jobs/1/ports/")
    api = as_alice.get("/api/v1/auth/token/")

    assert (page.status_code, page["Allow"], api.status_code) == (405, "POST", 405)
    assert "This address accepts only form submissions" in page.content.decode()
    assert api["Content-Type"] == "application/problem+json"
