"""Who is let in to the ports of jobs, and for how long."""

import asyncio
from datetime import timedelta

import aiohttp
import pytest
from asgiref.sync import sync_to_async
from django.utils.timezone import now

from accounts.models import User
from accounts.services import shares, tokens
from aiplatform.lib.errors import DomainError
from tests.factories import work
from tests.workers.origin_served import serving, session_of, sign_out, signed_in, ticket
from workers.access.proxy import admissions, published_ports, watching
from workers.access.proxy.models import Admission, PublishedPort
from workers.core.models import Job

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("an origin and a server of its own")]


@pytest.fixture
def job(alice, cluster):
    return work.job(alice, cluster, state="running")


@pytest.fixture
def web(job, alice):
    return published_ports.publish(job, port=40_000, by=alice, name="web")


@pytest.fixture
def other(alice, cluster):
    """A port of the same name of another of her jobs."""
    return published_ports.publish(work.job(alice, cluster, state="running"), port=40_000, by=alice, name="web")


@pytest.fixture
def key(alice):
    return session_of(alice)


@pytest.fixture
def named(settings):
    settings.PORTS_HOST = "jobs.example.org"


async def asked(served, row, **headers):
    """(status, code) of a request for the root of a port."""
    address = f"{served.url}/jobs/{row.job_id}/{row.name}/"
    async with served.client.get(address, headers=headers, allow_redirects=False) as answer:
        return answer.status, (await answer.json()).get("code", "") if answer.status >= 400 else ""


async def test_origin_lets_nobody_in_without_a_cookie(web):
    async with serving() as served:
        said = [
            await asked(served, web),
            await asked(served, web, Cookie=f"aip-port-{web.job_id}-web=guess"),
            await asked(served, web, Cookie="sessionid=abc"),
        ]

    assert said == [(403, "not_admitted")] * 3
    assert served.job.heard == []


async def test_ticket_works_once(web, key):
    path = (await sync_to_async(ticket)(web, key)).partition("//")[2].partition("/")[2]
    async with serving() as served:
        first = await served.client.get(f"{served.url}/{path}", headers=signed_in(key), allow_redirects=False)
        second = await served.client.get(f"{served.url}/{path}", headers=signed_in(key), allow_redirects=False)

    assert (first.status, second.status) == (303, 403)
    assert first.headers["Location"] == f"/jobs/{web.job_id}/web/"
    assert (first.headers["Referrer-Policy"], first.headers["Cache-Control"]) == ("no-referrer", "no-store")
    cookie = first.headers["Set-Cookie"]
    assert cookie.endswith(f"; Path=/jobs/{web.job_id}/web/; HttpOnly; SameSite=Lax")


async def test_ticket_used_twice_at_once_lets_one_in(web, key):
    path = (await sync_to_async(ticket)(web, key)).partition("//")[2].partition("/")[2]
    async with serving() as served:
        answers = await asyncio.gather(
            *(
                served.client.get(f"{served.url}/{path}", headers=signed_in(key), allow_redirects=False)
                for _ in range(8)
            )
        )

    assert sorted(answer.status for answer in answers) == [303] + [403] * 7


async def test_ticket_is_too_old_after_half_a_minute(web, key):
    path = (await sync_to_async(ticket)(web, key)).partition("//")[2].partition("/")[2]
    await sync_to_async(Admission.objects.update)(expires_at=now() - timedelta(seconds=1))
    async with (
        serving() as served,
        served.client.get(f"{served.url}/{path}", headers=signed_in(key), allow_redirects=False) as answer,
    ):
        assert answer.status == 403


async def test_ticket_sent_to_somebody_else_lets_their_browser_in_nowhere(web, key, bob):
    """Else its maker's page would run on the one origin of their ports."""
    bobs = await sync_to_async(session_of)(bob)
    path = (await sync_to_async(ticket)(web, key)).partition("//")[2].partition("/")[2]
    said = []
    async with serving() as served:
        for headers in ({}, signed_in(bobs), signed_in(key)):
            async with served.client.get(f"{served.url}/{path}", headers=headers, allow_redirects=False) as answer:
                said.append((answer.status, "Set-Cookie" in answer.headers))

    assert said == [(403, False), (403, False), (303, True)]


async def test_ticket_and_cookie_of_another_job_open_nothing(web, other, key):
    opened = await sync_to_async(ticket)(other, key)
    async with serving() as served:
        foreign = f"{served.url}/jobs/{web.job_id}/web/_enter?ticket={opened.partition('ticket=')[2]}"
        async with served.client.get(foreign, headers=signed_in(key), allow_redirects=False) as answer:
            entered = answer.status
        cookie = await served.enter(other, key)
        value = cookie.partition("=")[2]

        said = await asked(served, web, Cookie=f"aip-port-{web.job_id}-web={value}")

    assert (entered, said) == (403, (403, "not_admitted"))


async def test_cookie_that_a_page_tossed_in_front_does_not_keep_its_owner_out(web, key):
    async with serving() as served:
        cookie = await served.enter(web, key)

        said = await asked(served, web, Cookie=f"aip-port-{web.job_id}-web=tossed; {cookie}")

    assert said == (200, "")


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:8000", "http://evil.example", "null", "http://127.0.0.1", "http://["]
)
async def test_i02_foreign_pages_open_no_socket_and_change_nothing(web, key, origin):
    async with serving() as served:
        headers = {"Cookie": await served.enter(web, key), "Origin": origin}
        address = f"{served.url}/jobs/{web.job_id}/web/"
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await served.client.ws_connect(address, headers=headers)
        async with served.client.post(address, headers=headers) as answer:
            posted = answer.status

    assert (refused.value.status, posted) == (403, 403)
    assert served.job.heard == []


async def test_socket_without_an_origin_needs_a_token(web, key, alice):
    secret = await sync_to_async(lambda: tokens.issue(user=alice, name="script")[1])()
    async with serving() as served:
        address = f"{served.url}/jobs/{web.job_id}/web/"
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await served.client.ws_connect(address, headers={"Cookie": await served.enter(web, key)})
        async with served.client.ws_connect(address, headers={"Authorization": f"Bearer {secret}"}) as socket:
            await socket.send_str("hello")
            assert await socket.receive_str(timeout=20) == "hello"

    assert "Authorization" not in served.job.heard[0][2]


def _withdraw(row, **given):
    published_ports.withdraw(row, by=row.job.owner)


def _disable(row, user, **given):
    User.objects.filter(pk=user.pk).update(is_active=False)


def _sign_out(row, user, key):
    sign_out(key)


def _stop(row, **given):
    Job.objects.filter(pk=row.job_id).update(state="stopped")


def _change_password(row, user, **given):
    user.set_password("another one")
    user.save()


def _take_roles(row, user, **given):
    user.roles.clear()


@pytest.mark.parametrize(
    ("act", "status"),
    [(_withdraw, 403), (_disable, 403), (_sign_out, 403), (_stop, 410), (_change_password, 403), (_take_roles, 403)],
)
async def test_i05_who_loses_the_right_is_out_within_seconds(web, alice, key, act, status, monkeypatch):
    monkeypatch.setattr(watching, "HOLDS_S", 0.2)
    async with serving() as served:
        cookie = await served.enter(web, key)
        headers = {"Cookie": cookie, "Origin": served.url}
        address = f"{served.url}/jobs/{web.job_id}/web/"
        socket = await served.client.ws_connect(address, headers=headers)
        events = await served.client.get(f"{address}stream", headers=headers)
        await events.content.readuntil(b"\n\n")

        await sync_to_async(act)(web, user=alice, key=key)

        async with asyncio.timeout(20):
            ended = await socket.receive()
            with pytest.raises(aiohttp.ClientError):
                await events.read()
            said = await asked(served, web, Cookie=cookie)
        async with asyncio.timeout(20):
            while served.job.sockets:
                await asyncio.sleep(0.02)

    assert (ended.type, ended.data, said[0]) == (aiohttp.WSMsgType.CLOSE, 1008, status)


async def test_tokens_of_scripts_open_ports(web, alice, bob):
    issue = sync_to_async(lambda user, scope: tokens.issue(user=user, name="script", scope=scope)[1])
    reading, writing, bobs = await issue(alice, "read"), await issue(alice, "write"), await issue(bob, "write")
    async with serving() as served:
        said = [await asked(served, web, Authorization=f"Bearer {secret}") for secret in (reading, bobs, "aip_guess")]
        address = f"{served.url}/jobs/{web.job_id}/web/"
        posted = [
            (await served.client.post(address, headers={"Authorization": f"Bearer {secret}"})).status
            for secret in (reading, writing)
        ]

    assert said == [(200, ""), (404, "not_found"), (401, "not_signed_in")]
    assert posted == [403, 200]
    assert all("Authorization" not in heard[2] for heard in served.job.heard)


async def test_programs_own_authorization_reaches_the_program(web, key):
    async with serving() as served:
        await asked(served, web, Cookie=await served.enter(web, key), Authorization="token theirs")

    assert served.job.heard[0][2]["Authorization"] == "token theirs"


async def test_secret_of_a_provided_port_is_said_to_its_server_alone(job, key):
    row = await sync_to_async(published_ports.provide)(job, name="lab", socket="/tmp/lab.sock", path="lab", secret="s3")
    async with serving() as served:
        cookie = await served.enter(row, key)

        await asked(served, row, Cookie=cookie, Authorization="token mine")

    assert served.job.heard[0][2]["Authorization"] == "token s3"
    assert "s3" not in row.secret


def test_ports_of_others_open_only_with_names_of_their_own(web, alice, bob, settings):
    key = session_of(bob)
    with pytest.raises(DomainError) as unshared:
        ticket(web, key)
    shares.share(kind="port", pk=web.pk, level="view", by=alice, person="bob")
    with pytest.raises(DomainError) as on_one_origin:
        ticket(web, key)
    settings.PORTS_HOST = "jobs.example.org"

    opened = ticket(web, key)

    assert (unshared.value.code, on_one_origin.value.code) == ("not_allowed", "ports_need_names")
    assert opened.startswith(f"http://job-{web.job_id}-web.jobs.example.org:8001/_enter?ticket=")


def test_operators_see_ports_and_enter_none_unasked(web, olga):
    assert PublishedPort.objects.visible_to(olga).filter(pk=web.pk).exists()
    with pytest.raises(DomainError) as refused:
        ticket(web, session_of(olga))
    assert refused.value.code == "not_allowed"


async def test_named_port_keeps_whole_paths_and_its_own_cookie(web, key, named):
    path = (await sync_to_async(ticket)(web, key)).partition("8001/")[2]
    host = {"Host": f"job-{web.job_id}-web.jobs.example.org:8001"}
    async with serving() as served:
        async with served.client.get(f"{served.url}/{path}", headers=host, allow_redirects=False) as entered:
            cookie = entered.headers["Set-Cookie"].partition(";")[0]
        headers = host | {"Cookie": f"{cookie}; any=1; sessionid=s"}
        async with served.client.get(f"{served.url}/jobs/1/x", headers=headers) as answer:
            inside = answer.status
        elsewhere = host | {"Host": "job-9999-web.jobs.example.org:8001", "Cookie": cookie}
        async with served.client.get(f"{served.url}/", headers=elsewhere) as answer:
            outside = answer.status
        async with served.client.get(f"{served.url}/jobs/{web.job_id}/web/", headers={"Cookie": cookie}) as answer:
            unnamed = answer.status

    assert (inside, outside, unnamed) == (200, 403, 404)
    assert served.job.heard[0][1] == "/jobs/1/x"
    assert served.job.heard[0][2]["Cookie"] == "any=1"


async def test_unshared_port_is_closed_to_who_had_it(web, alice, bob, named):
    @sync_to_async
    def prepared():
        shares.share(kind="port", pk=web.pk, level="view", by=alice, person="bob")
        return ticket(web, session_of(bob)).partition("ticket=")[2]

    @sync_to_async
    def entered(secret):
        return admissions.enter(web.job_id, "web", secret)[0]

    cookie = await entered(await prepared())
    before = await sync_to_async(admissions.by_cookie)(web.job_id, "web", cookie)
    await sync_to_async(shares.unshare)(kind="port", pk=web.pk, by=alice, person="bob")

    with pytest.raises(admissions.Refused) as refused:
        await sync_to_async(admissions.by_cookie)(web.job_id, "web", cookie)

    assert (before.person, refused.value.code) == (bob.pk, "not_shared")


@pytest.mark.parametrize(
    "path",
    [
        "/", "/jobs/", "/jobs/1", "/jobs/x/web/", "/jobs/1/WEB/", "/jobs/1/web%2f/", "/jobs/1/..%2f/",
        "/jobs/99999999999999999999/web/", "//evil.example/", "/jobs/1//web/", "/healthz",
    ],
)  # fmt: skip
async def test_i01_addresses_that_name_no_port_lead_nowhere(web, path):
    async with serving() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(served.host.partition(":")[2]))
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {served.host}\r\nConnection: close\r\n\r\n".encode())
        status = (await reader.readline()).split()[1]
        writer.close()

    assert status == b"404"
    assert served.job.heard == []


async def test_host_that_is_no_address_leads_nowhere(web, named):
    async with serving() as served, served.client.get(f"{served.url}/", headers={"Host": "[::1"}) as answer:
        assert answer.status in {400, 404}
