"""A job is somebody's program: what it tells the SSH gateway harms its own sessions alone."""

from __future__ import annotations

import asyncio
import contextlib

import asyncssh
import pytest

from tests.workers.ssh_clients import KEY, SOON_S, alices_key, connect, gateway, in_thread, inside, job, until
from workers.access.ssh import activity
from workers.access.ssh.gateway import connection, hub
from workers.access.ssh.gateway.session import FRAME
from workers.access.ssh.models import SshSession

__all__ = ["alices_key", "inside", "job"]  # fixtures
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("the gateway and its clients")]


def frame(kind, payload, length=None):
    return FRAME.pack(kind, len(payload) if length is None else length) + payload


@pytest.mark.parametrize("odd", [
    frame(b"X", b"[]"), frame(b"X", b"7"), frame(b"X", b'{"code": "0"}'), frame(b"X", b'{"code": 99999999999999}'),
    frame(b"X", b'{"signal": "\\u0000\\ud800", "code": -1}'), frame(b"X", b"[" * 60_000), frame(b"X", b"\xff"),
    frame(b"Q", b"what"), frame(b"O", b"", 2**32 - 1),
], ids=range(9))  # fmt: skip
async def test_i10_hostile_job_ends_its_own_session_alone(odd, job, alices_key, inside):
    inside.odd = odd
    async with gateway() as (_hub, port), connect(port, job.pk, key=KEY) as client:
        bad = await asyncio.wait_for(client.run("true", encoding=None), SOON_S)
        inside.odd = b""
        good = await asyncio.wait_for(client.run("true", encoding=None), SOON_S)

    assert (bad.exit_status, good.exit_status) == (255, 7)


@pytest.mark.parametrize(("answer", "told"), [
    ({"port": 10**9, "key": "k"}, b""), ({"port": "80", "key": "k"}, b""), ({"port": 80, "key": []}, b""), ({}, b""),
    ({"port": 8080, "key": "k"}, b"no json\n"), ({"port": 8080, "key": "k"}, b"[]\n"),
    ({"port": 8080, "key": "k"}, b'{"id": "x"}\n'), ({"port": 8080, "key": "k"}, b'{"id": 1}\n' * 5_000),
], ids=range(8))  # fmt: skip
async def test_i10_hostile_job_listens_to_no_harm(answer, told, job, alices_key, inside):
    inside.answer, inside.odd = answer, told
    async with gateway() as (running, port), connect(port, job.pk, key=KEY) as client:
        with contextlib.suppress(asyncssh.ChannelListenError):
            await client.forward_remote_port("", 0, "127.0.0.1", 1)
        await asyncio.sleep(0)
        inside.answer, inside.odd = {"ok": True}, b""
        good = await asyncio.wait_for(client.run("true", encoding=None), SOON_S)
        (held,) = running.connections
        assert held.channels <= connection.MAX_CHANNELS

    assert good.exit_status == 7


async def test_forwarded_port_counts_as_life_only_while_it_is_busy(job, alices_key, inside, monkeypatch):
    async with gateway() as (running, port), connect(port, job.pk, key=KEY) as client:
        await until(SshSession.objects.open().exists)
        reader, writer = await client.open_connection("localhost", 8888)
        writer.write(b"still here")
        await reader.readexactly(10)
        await running.write()
        quiet = await in_thread(activity.last_heard)(job)
        writer.write(b"x" * hub.BUSY_BYTES)
        await reader.readexactly(hub.BUSY_BYTES)
        await running.write()
        busy = await in_thread(activity.last_heard)(job)
        writer.close()

    assert quiet is None
    assert busy is not None
