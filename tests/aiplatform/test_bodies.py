"""Bodies of requests: what is too large, from nobody, or too slow is refused before it is all here."""

from __future__ import annotations

import asyncio
import json
from collections import namedtuple

import pytest
from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.test import override_settings
from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.services import tokens
from aiplatform import env
from aiplatform.lib import pace
from aiplatform.web import bodies
from aiplatform.web.handler import Handler
from tests.factories import people

MIB = 1 << 20


@login_not_required
def count(request):
    return HttpResponse(str(len(request.read())))


class Echo(APIView):
    authentication_classes = ()
    permission_classes = ()

    def post(self, request):
        return Response({name: str(value) for name, value in request.data.items()})


urlpatterns = [path("count/", count), path("echo/", login_not_required(Echo.as_view()))]


@pytest.fixture
def send():
    """Send pieces to `/count/`: (status, how many pieces were taken)."""
    app = Handler()

    def sent(pieces, *headers, pause_s=0.0, path="/count/"):
        said, left = [], list(pieces)

        async def receive():
            await asyncio.sleep(pause_s)  # pause: how slowly a caller sends
            piece = left.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(left)}

        async def say(message):
            said.append(message)

        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "scheme": "http",
                 "headers": [(b"host", b"testserver"), *headers], "client": ["10.0.0.9", 1]}  # fmt: skip
        asyncio.run(app(scope, receive, say))
        sent.answer = said[1]["body"]
        return said[0]["status"], len(pieces) - len(left)

    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[]):
        app.load_middleware()
        yield sent
    app._threads.shutdown()


@pytest.fixture
def alice():
    _token, secret = tokens.issue(user=people.user("alice"), name="laptop")
    return b"authorization", f"Bearer {secret}".encode()


pytestmark = pytest.mark.django_db(transaction=True)


def test_d14_body_of_nobody_is_refused_at_its_first_piece_too_much(send):
    assert send([b"x" * bodies.ANYBODYS_BYTES]) == (200, 1)
    assert send([b"x" * bodies.ANYBODYS_BYTES, *[b"x"] * 9]) == (401, 2)
    assert send([b"x"] * 9, (b"content-length", b"%d" % MIB)) == (401, 0)


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        ("application/json", [b'{"na', b'me": "x"}']),
        (
            "multipart/form-data; boundary=b",
            [b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\nx', b"\r\n--b--\r\n"],
        ),
    ],
)
def test_j11_body_in_chunks_without_a_length_is_read(send, kind, pieces):
    headers = ((b"transfer-encoding", b"chunked"), (b"content-type", kind.encode()))

    assert send(pieces, *headers, path="/echo/")[0] == 200
    assert json.loads(send.answer) == {"name": "x"}


def test_d14_body_of_a_person_may_be_as_large_as_an_upload(send, alice, monkeypatch):
    monkeypatch.setattr(env, "MAX_UPLOAD_BYTES", 4 * MIB)

    assert send([b"x" * MIB] * 4, alice) == (200, 4)
    assert send([b"x" * MIB] * 9, alice) == (413, 5)
    assert send([b"x" * MIB] * 9, alice, (b"content-length", b"%d" % (9 * MIB))) == (413, 0)


def test_d14_body_that_would_fill_the_disk_is_refused(send, alice, monkeypatch):
    usage = namedtuple("usage", "total used free")
    kept = env.MIN_FREE_BYTES
    monkeypatch.setattr(bodies.shutil, "disk_usage", lambda _place: usage(100 * kept, 99 * kept, kept + 2 * MIB))

    assert send([b"x" * MIB] * 2, alice)[0] == 200
    assert send([b"x"], alice, (b"content-length", b"%d" % (3 * MIB))) == (507, 0)


def test_body_is_refused_in_the_language_of_the_browser(send, alice, monkeypatch):
    chinese = (b"accept-language", b"zh-CN,zh;q=0.9")
    monkeypatch.setattr(env, "MAX_UPLOAD_BYTES", 4 * MIB)
    usage = namedtuple("usage", "total used free")
    told = {}

    for name, size, headers in (("nobody", 1, ()), ("large", 9, (alice,)), ("full", 3, (alice,))):
        if name == "full":
            monkeypatch.setattr(bodies.shutil, "disk_usage", lambda _place: usage(100 << 30, 100 << 30, 0))
        send([b"x"], *headers, chinese, (b"content-length", b"%d" % (size * MIB)))
        told[name] = json.loads(send.answer)["detail"]

    assert told["nobody"] == "请先登录，再发送这么多数据。"
    assert told["large"] == "一次最多接收 4,194,304 字节。"
    assert "磁盘" in told["full"]
    send([b"x"], (b"content-length", b"%d" % MIB))
    assert json.loads(send.answer)["detail"] == "Sign in before sending large requests."


def test_body_that_trickles_is_let_go_though_its_sender_never_rests(send, monkeypatch):
    monkeypatch.setattr(pace, "IDLE_S", 0.3)

    status, taken = send([b"x"] * 100, pause_s=0.02)

    assert status == 408
    assert taken < 50


def test_body_is_slow_but_arrives(send, monkeypatch):
    monkeypatch.setattr(pace, "IDLE_S", 0.3)

    assert send([b"x" * 4096] * 20, pause_s=0.05) == (200, 20)
