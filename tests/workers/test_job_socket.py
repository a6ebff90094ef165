"""The socket of a job page. Frames are read from the real consumer; time is the tests' only fake."""

import json

import pytest
from channels.db import database_sync_to_async
from django.test import Client

from accounts.services import tokens
from aiplatform.asgi import application
from aiplatform.lib.wording import verbatim
from tests.factories import work
from tests.fakes.sockets import SocketClient
from workers.core.models import Job
from workers.jobs.output import job_stream, metrics
from workers.jobs.output import sockets as job_sockets

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("a broker that is not there")]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(job_stream, "TAIL_S", 0.01)
    monkeypatch.setattr(job_stream, "ROWS_S", 0.02)
    monkeypatch.setattr(job_stream, "GUARD_S", 0.05)


@pytest.fixture
def running(alice, cluster):
    job = work.job(alice, cluster, state="running")
    work.run_dir(job).log.write_bytes(b"before\n")
    return job


def cookie(user) -> bytes:
    client = Client()
    client.force_login(user)
    return f"sessionid={client.cookies['sessionid'].value}".encode()


def socket(job_id, *, cookie=b"", origin=b"http://testserver", token=b""):
    headers = [(b"host", b"testserver")]
    headers += [(b"origin", origin)] if origin else []
    headers += [(b"cookie", cookie)] if cookie else []
    headers += [(b"authorization", b"Bearer " + token)] if token else []
    return SocketClient(application, f"/ws/jobs/{job_id}/", headers)


async def frame(connection, kind, **wanted):
    """The next frame of `kind` that has `wanted`."""
    while True:
        found = json.loads((await connection.hear())["text"])
        if found["type"] == kind and all(found.get(key) == value for key, value in wanted.items()):
            return found


async def closed_with(connection):
    while (message := await connection.hear())["type"] != "websocket.close":
        pass
    return message["code"]


async def test_job_socket_sends_log_state_and_metrics(running, alice):
    session = await database_sync_to_async(cookie)(alice)
    connection = socket(running.pk, cookie=session)
    assert await connection.open()

    hello = await frame(connection, "hello")
    with work.run_dir(running).log.open("ab") as log:
        log.write("epoch 1 数据\n".encode())
    line = await frame(connection, "log")
    await database_sync_to_async(Job.objects.filter(pk=running.pk).update)(message=verbatim("Half way."))
    state = await frame(connection, "state", header=True)
    attempt = await database_sync_to_async(running.attempts.get)()
    await database_sync_to_async(metrics.record_system)(attempt, {"system/cpu": 99.0})
    points = await frame(connection, "metrics")
    await connection.close()

    assert (hello["attempt"], hello["size"]) == (1, 7)
    assert (line["text"], line["offset"], line["next_offset"]) == ("epoch 1 数据\n", 7, 22)
    assert state["job"]["state"] == "running"
    assert points["points"]["system/cpu"][0][1] == 99.0
    assert job_stream._streams == {}


async def test_job_socket_says_that_there_are_more_points_than_it_sends(running, alice):
    """Part of them would leave viewers who read the curves meanwhile with others than they count."""
    attempt = await database_sync_to_async(running.attempts.get)()
    session = await database_sync_to_async(cookie)(alice)
    connection = socket(running.pk, cookie=session)
    assert await connection.open()
    await frame(connection, "hello")
    flood = [("a", step) for step in range(1_500)] + [("b", step) for step in range(1_500)]

    await database_sync_to_async(metrics.add)(attempt, [(key, step, 1.0, work.now()) for key, step in flood])
    many = await frame(connection, "metrics")
    await database_sync_to_async(metrics.add)(attempt, [("b", 1_500, 2.0, work.now())])
    one = await frame(connection, "metrics")
    await connection.close()

    assert (many["after"], many["last_id"], many["points"]) == (-1, 3_000, {})
    assert (one["after"], one["last_id"], list(one["points"])) == (3_000, 3_001, ["b"])


async def test_job_socket_repeats_nothing_of_a_log_that_outgrew_its_quota(running, alice):
    home = work.run_dir(running)
    home.path.joinpath("launch.json").write_text('{"log_quota_bytes": 20}')
    connection = socket(running.pk, cookie=await database_sync_to_async(cookie)(alice))
    await connection.open()
    await frame(connection, "hello")

    with home.log.open("ab") as log:
        log.write(b"x" * 50)
    line = await frame(connection, "log")
    with home.log.open("ab") as log:
        log.write(b"x" * 10)
    home.path.joinpath("exit.json").write_text("{}")
    rest = await frame(connection, "log")
    await connection.close()

    assert [(line["offset"], line["next_offset"]), (rest["offset"], rest["next_offset"])] == [(7, 20), (20, 67)]


async def test_job_socket_viewers_share_one_watch_and_get_the_same(running, alice):
    session = await database_sync_to_async(cookie)(alice)
    pair = [socket(running.pk, cookie=session) for _ in range(2)]
    for connection in pair:
        await connection.open()
        await frame(connection, "hello")
    assert len(job_stream._streams) == 1

    with work.run_dir(running).log.open("ab") as log:
        log.write(b"for both\n")

    assert [(await frame(connection, "log"))["text"] for connection in pair] == ["for both\n"] * 2
    for connection in pair:
        await connection.close()


async def test_B07_job_socket_closes_to_a_stranger_with_4404(running, bob):
    connection = socket(running.pk, cookie=await database_sync_to_async(cookie)(bob))
    missing = socket(10**15, cookie=await database_sync_to_async(cookie)(bob))
    await connection.open()
    await missing.open()

    assert await closed_with(connection) == await closed_with(missing) == 4404


async def test_job_socket_without_an_account_is_closed(running):
    connection = socket(running.pk)
    await connection.open()

    assert await closed_with(connection) == 4401


async def test_J01_job_socket_refuses_a_foreign_page_at_the_handshake(running, alice):
    session = await database_sync_to_async(cookie)(alice)

    for origin in (b"https://e.vil", b"null", b""):
        assert not await socket(running.pk, cookie=session, origin=origin).open()


async def test_J01_job_socket_lets_a_script_in_with_its_token(running, alice):
    _row, secret = await database_sync_to_async(tokens.issue)(user=alice, name="script")
    connection = socket(running.pk, token=secret.encode(), origin=b"")

    assert await connection.open()
    assert await frame(connection, "hello")
    await connection.close()


async def test_J01_job_socket_limits_the_sockets_of_one_person(running, alice, monkeypatch):
    monkeypatch.setattr(job_sockets, "SOCKETS_PER_PERSON", 1)
    session = await database_sync_to_async(cookie)(alice)
    first, second = socket(running.pk, cookie=session), socket(running.pk, cookie=session)
    await first.open()
    await frame(first, "hello")
    await second.open()

    assert await closed_with(second) == 4429
    await first.close()


async def test_J01_job_socket_refuses_a_large_message(running, alice):
    connection = socket(running.pk, cookie=await database_sync_to_async(cookie)(alice))
    await connection.open()
    await connection.say("x" * 70_000)

    assert await closed_with(connection) == 1009


async def test_B07_job_socket_ends_when_the_right_to_look_is_lost(running, alice, bob):
    connection = socket(running.pk, cookie=await database_sync_to_async(cookie)(alice))
    await connection.open()
    await frame(connection, "hello")

    await database_sync_to_async(Job.objects.filter(pk=running.pk).update)(owner=bob)

    assert await closed_with(connection) == 4404


async def test_job_socket_starts_a_new_log_for_a_new_attempt(running, alice):
    connection = socket(running.pk, cookie=await database_sync_to_async(cookie)(alice))
    await connection.open()
    await frame(connection, "hello")
    work.run_dir(running, 2).log.write_bytes(b"second try\n")

    await database_sync_to_async(Job.objects.filter(pk=running.pk).update)(attempt_number=2)

    assert (await frame(connection, "log", attempt=2, offset=0))["text"] == "second try\n"
    await connection.close()


def test_job_socket_slow_viewer_loses_frames_not_memory():
    viewer = job_stream.Viewer("x", None)

    for n in range(1000):
        viewer.offer(str(n))

    assert viewer.frames.qsize() == job_stream.QUEUE_FRAMES


async def test_job_socket_survives_a_dead_broker(running, alice, settings):
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": ["unix:///nowhere/valkey.sock"]},
        }
    }
    connection = socket(running.pk, cookie=await database_sync_to_async(cookie)(alice))
    assert await connection.open()
    await frame(connection, "hello")

    with work.run_dir(running).log.open("ab") as log:
        log.write(b"still here\n")

    assert (await frame(connection, "log"))["text"] == "still here\n"
    await connection.close()
