"""The reverse proxy in front of a real model server."""

import asyncio
import re

import pytest

from accounts.services import tokens
from aiplatform.lib import pace
from inference.serving import endpoints as serving
from inference.serving import proxy
from tests.factories import models as factory
from tests.inference import pictures, tiny
from tests.inference.asking import Answer, call, one_call
from tests.inference.running import running_at, set_state
from tests.running import free_port
from workers.access.proxy import application as port_proxy
from workers.access.proxy import endpoints

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("a model server of its own")]


@pytest.fixture(scope="module")
def port(serve, tmp_path_factory):
    return serve(tiny.detector(tmp_path_factory.mktemp("model")), AIP_SERVICE_KEY="secret")


@pytest.fixture
def service(alice, tmp_path, port, monkeypatch):
    made = serving.create(user=alice, name="demo", model_version=factory.model_version(alice, tmp_path, name="tiny"))
    monkeypatch.setattr(serving, "key_for", lambda job, attempt: "secret")
    running_at(monkeypatch, made, port)
    return made


def test_service_proxy_passes_an_image_through(service, alice):
    data = pictures.with_boxes({(16, 32, 32, 48): "green"})

    answer = call("POST", f"{service.url}/predict", user=alice, body=data)

    assert answer.status == 200
    assert answer.json["predictions"][0]["box"] == [16, 32, 32, 48]
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    service.refresh_from_db()
    assert service.state == "ready"


def test_service_proxy_passes_the_protocol_through(service, alice):
    assert call("GET", f"{service.url}/v2/health/ready", user=alice).status == 200
    assert call("GET", f"{service.url}/v2/models/tiny", user=alice).json["name"] == "tiny"
    assert call("GET", f"{service.url}/v2/models/nothing", user=alice).status == 404
    assert b"aip_requests_total" in call("GET", f"{service.url}/metrics", user=alice).body


def test_service_proxy_keeps_a_private_service_private(service, bob, anna, olga):
    assert call("GET", f"{service.url}/v2").status == 401
    assert call("GET", f"{service.url}/v2", headers={"Authorization": "Bearer aip_wrong"}).status == 401
    stranger = call("GET", f"{service.url}/v2", user=bob)
    missing = call("GET", "/serve/no-such-service/v2", user=bob)
    assert (stranger.status, stranger.body) == (404, missing.body)
    assert call("GET", f"{service.url}/v2", user=anna).status == 403
    assert call("GET", f"{service.url}/v2", user=olga).status == 200


def test_service_proxy_opens_a_public_service_to_everyone_with_an_account(service, bob):
    serving.edit(service=service, description="", visibility="public")

    assert call("GET", f"{service.url}/v2", user=bob).status == 200
    assert call("GET", f"{service.url}/v2").status == 401


def test_service_proxy_refuses_in_the_callers_language(service, alice, bob):
    chinese = {"Accept-Language": "zh-CN"}

    messages = [
        call("GET", "/serve/nonesuch/predict", user=bob, headers=chinese).json["detail"],
        call("GET", f"/serve/{service.slug}/secrets", user=alice, headers=chinese).json["detail"],
        call("GET", "/serve/nonesuch/predict", headers=chinese).json["detail"],
    ]

    assert messages[0] == "未找到此服务。"
    assert all(re.search(r"[\u4e00-\u9fff]", message) for message in messages)
    assert call("GET", "/serve/nonesuch/predict", user=bob).json["detail"] == "Service not found."


def test_service_proxy_answers_gone_for_a_stopped_service(service, alice):
    set_state(service.job, "stopped")

    answer = call("GET", f"{service.url}/v2", user=alice)

    assert (answer.status, answer.json["code"]) == (410, "service_stopped")
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("state", ["queued", "assigned", "starting"])
def test_service_proxy_says_retry_for_a_service_on_its_way(service, alice, state):
    set_state(service.job, state)

    answer = call("GET", f"{service.url}/v2", user=alice)

    assert (answer.status, answer.json["code"]) == (503, "service_starting")
    assert int(answer.headers["retry-after"]) > 0


def test_service_proxy_says_retry_for_a_port_where_nobody_listens(service, alice, monkeypatch):
    running_at(monkeypatch, service, free_port())

    assert call("GET", f"{service.url}/v2", user=alice).status == 503


def test_service_proxy_never_reaches_another_tenants_server_on_the_port(service, alice, monkeypatch):
    monkeypatch.setattr(serving, "key_for", lambda job, attempt: "another attempt")

    assert call("GET", f"{service.url}/v2/models/tiny", user=alice).status == 503


def test_service_proxy_forwards_no_credentials_and_no_false_headers(service, alice, monkeypatch):
    received = {}

    async def listen(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        received.update(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        received["line"] = head.split("\r\n")[0]
        answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: session=evil\r\nConnection: close, X-Secret\r\nX-Secret: 1\r\n"
        writer.write(answer + b"Content-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    token = tokens.issue(user=alice, name="t")[1]
    headers = {
        "Authorization": f"Bearer {token}",
        "Cookie": "sessionid=abc; other=1",
        "Connection": "X-Drop",
        "X-Drop": "1",
        "X-Forwarded-For": "1.2.3.4",
        "X-Aip-Service-Key": "guess",
        "X-Kept": "yes",
    }

    async def main():
        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        running_at_port(server.sockets[0].getsockname()[1])
        app = proxy.new()
        try:
            return await one_call(app, "GET", f"{service.url}/v2?a=%20b", headers, None, leaves=False)
        finally:
            await app.close()
            server.close()

    def running_at_port(number):
        monkeypatch.setattr("workers.access.proxy.endpoints.endpoint", lambda job: ("127.0.0.1", number))

    answer = Answer(asyncio.run(main()))

    assert received["line"] == "GET /v2?a=%20b HTTP/1.1"
    assert received["x-kept"] == "yes"
    assert received["x-forwarded-for"] == "10.0.0.9"
    assert received["x-aip-service-key"] == "secret"
    assert not {"authorization", "cookie", "x-drop"} & set(received)
    assert answer.body == b"ok"
    assert not {"set-cookie", "x-secret", "connection"} & set(answer.headers)


def answered(monkeypatch, service, user, path, head):
    """What a caller gets where the job's server answers with these lines."""

    async def listen(reader, writer):
        request = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        here = request.split("host: ")[1].split("\r\n")[0]
        writer.write(head.replace("{here}", here).encode() + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    token = tokens.issue(user=user, name="t")[1]

    async def main():
        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        number = server.sockets[0].getsockname()[1]
        monkeypatch.setattr("workers.access.proxy.endpoints.endpoint", lambda job: ("127.0.0.1", number))
        app = proxy.new()
        try:
            headers = {"Authorization": f"Bearer {token}"}
            return await one_call(app, "GET", f"{service.url}{path}", headers, None, leaves=False)
        finally:
            await app.close()
            server.close()

    return Answer(asyncio.run(main()))


@pytest.mark.parametrize(
    ("location", "public"),
    [
        ("http://{here}/v2", "/v2"), ("http://{here}/v2?a=%20b", "/v2?a=%20b"), ("//{here}/v2", "/v2"), ("/v2", "/v2"),
        ("http://site/v2", "/v2"), ("https://site/v2", "/v2"), ("models/x", "/v2/models/x"), ("../metrics", "/metrics"),
        ("?a=1", "/v2/?a=1"), ("http://{here}", "/"), ("//", "/v2/"),
        ("http://{here}//evil.example/", "/evil.example/"), ("/%2e%2e/%2e%2e/logout/", "/logout/"),
        ("http://site{mount}/v2", "/v2"),
    ],
)  # fmt: skip
def test_service_proxy_passes_a_redirect_on_as_a_public_path(service, alice, monkeypatch, location, public):
    location = location.replace("{mount}", service.url)
    head = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\nContent-Location: http://{{here}}/v2"

    answer = answered(monkeypatch, service, alice, "/v2/", head)

    assert (answer.status, answer.headers["location"]) == (307, f"{service.url}{public}")
    assert "127.0.0.1" not in str(answer.headers)


@pytest.mark.parametrize(
    "location",
    [
        "http://evil.example/", "//evil.example/v2", "https://127.0.0.1:1/v2", "http://[::1]/", "javascript:alert(1)",
        "data:text/html,x", "http://[broken", "/v2/..%5c..%5clogout", "\\\\evil.example",
        "http://user:secret@evil.example/",
    ],
)  # fmt: skip
def test_service_proxy_passes_no_redirect_on_that_leads_elsewhere(service, alice, monkeypatch, location):
    moved = answered(monkeypatch, service, alice, "/v2/", f"HTTP/1.1 302 Found\r\nLocation: {location}")
    made = answered(monkeypatch, service, alice, "/v2/", f"HTTP/1.1 201 Created\r\nLocation: {location}")

    assert (moved.status, moved.json["code"]) == (502, "redirected_elsewhere")
    assert made.status == 201
    assert not {"location", "refresh"} & (set(moved.headers) | set(made.headers))


def test_service_proxy_passes_on_no_header_about_the_platforms_own_address(service, alice, monkeypatch):
    lines = ["HTTP/1.1 200 OK", "Refresh: 0; url=http://{here}/", 'Clear-Site-Data: "cookies"', "Alt-Svc: h2=x",
             "Link: <http://{here}/x>; rel=preload", "X-Kept: 1"]  # fmt: skip

    answer = answered(monkeypatch, service, alice, "/v2/", "\r\n".join(lines))

    assert answer.headers["x-kept"] == "1"
    assert not {"refresh", "clear-site-data", "alt-svc", "link"} & set(answer.headers)


def test_service_proxy_redirects_of_the_model_server_stay_public(service, alice):
    answer = call("GET", f"{service.url}/v2/", user=alice)

    assert answer.status == 307
    assert answer.headers["location"] == f"{service.url}/v2"


@pytest.mark.parametrize("rest", ["", "/", "/admin", "/v2/../../x", "/.env"])
def test_service_proxy_opens_only_the_services_own_routes(service, alice, rest):
    assert call("GET", f"{service.url}{rest}", user=alice).status == 404


def test_service_proxy_ignores_a_cookie_from_a_foreign_page(service, as_alice):
    cookie = f"sessionid={as_alice.cookies['sessionid'].value}"
    data = pictures.plain()

    own = call("POST", f"{service.url}/predict", headers={"Cookie": cookie, "Origin": "http://site"}, body=data)
    foreign = call("POST", f"{service.url}/predict", headers={"Cookie": cookie, "Origin": "http://evil"}, body=data)

    assert (own.status, foreign.status) == (200, 401)


def test_service_proxy_does_not_answer_a_caller_who_left(service, alice, monkeypatch):
    async def never(reader, writer):
        await reader.read(-1)  # until the proxy hangs up
        hung_up.set()
        writer.close()

    hung_up = asyncio.Event()
    token = tokens.issue(user=alice, name="t")[1]

    async def main():
        server = await asyncio.start_server(never, "127.0.0.1", 0)
        number = server.sockets[0].getsockname()[1]
        monkeypatch.setattr("workers.access.proxy.endpoints.endpoint", lambda job: ("127.0.0.1", number))
        app = proxy.new()
        headers = {"Authorization": f"Bearer {token}"}
        sent = await one_call(app, "GET", f"{service.url}/v2", headers, None, leaves=True)
        await app.close()
        await asyncio.wait_for(hung_up.wait(), 60)
        server.close()
        return sent

    assert asyncio.run(main()) == []


def test_service_proxy_lets_a_caller_go_who_trickles(service, alice, monkeypatch):
    monkeypatch.setattr(pace, "IDLE_S", 0.3)
    token = tokens.issue(user=alice, name="t")[1]
    headers = [(b"authorization", f"Bearer {token}".encode()), (b"content-length", b"200")]
    where = f"{service.url}/predict"
    scope = {"type": "http", "method": "POST", "path": where, "query_string": b"", "headers": headers}
    left, sent = [b"x"] * 200, []

    async def receive():
        await asyncio.sleep(0.02)  # pause: how slowly a caller sends
        return {"type": "http.request", "body": left.pop(), "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    async def main():
        app = proxy.new()
        await app(scope, receive, send)
        await app.close()

    asyncio.run(main())

    assert sent == []
    assert len(left) > 100


def test_service_proxy_checks_permission_again_after_a_second(service, alice, monkeypatch):
    app = proxy.new()
    clock = [100.0]
    monkeypatch.setattr(port_proxy.time, "monotonic", lambda: clock[0])
    headers = {"Authorization": f"Bearer {tokens.issue(user=alice, name='t')[1]}"}

    assert call("GET", f"{service.url}/v2", headers=headers, app=app).status == 200
    set_state(service.job, "stopped")
    clock[0] += 1.1

    assert call("GET", f"{service.url}/v2", headers=headers, app=app).status == 410


def test_service_proxy_asks_the_new_server_where_the_old_one_left_meanwhile(service, alice, port, monkeypatch):
    """An address that was cached for a second leads to a port that is closed by now."""
    data = pictures.with_boxes({(16, 32, 32, 48): "green"})
    places = [("127.0.0.1", free_port()), ("127.0.0.1", port)]
    monkeypatch.setattr(endpoints, "endpoint", lambda _job: places.pop(0) if len(places) > 1 else places[0])

    answer = call("POST", f"{service.url}/predict", user=alice, body=data)

    assert answer.status == 200
    assert answer.json["predictions"][0]["box"] == [16, 32, 32, 48]
