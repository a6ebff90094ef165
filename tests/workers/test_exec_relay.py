"""The relay between machines: who is let through, and that no byte is lost on the way."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from types import SimpleNamespace

import pytest

from aiplatform import env
from tests.running import free_port
from tests.workers.launched import node, placed, reachable
from workers.execution.exec import channels, greeting, relay
from workers.execution.exec.channels import ChannelRefused, Way

__all__ = ["node", "placed", "reachable"]  # fixtures
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("relays and jobs")]


@pytest.fixture
def relaying(monkeypatch):
    """A relay of this machine, in a thread of its own; its port is that of the cluster."""
    port, loop, ready = free_port(), asyncio.new_event_loop(), threading.Event()
    monkeypatch.setattr(env, "EXEC_PORT", port)

    async def begin():
        server = await relay.listen("127.0.0.1", port)
        ready.set()
        return server

    async def over():
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def serve():
        server = loop.run_until_complete(begin())
        loop.run_forever()
        server.close()
        loop.run_until_complete(over())
        loop.close()

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(60)
    yield port
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)


def test_job_of_another_machine_is_reached_through_its_relay(reachable, relaying, settings):
    settings.NODE = "node2"
    way = channels.way_to(reachable)
    request = {"act": "session", "command": "echo $AIP_JOB_ID"}

    assert way.relay == ("127.0.0.1", relaying)
    with channels.connect(way, request) as channel:
        said = channel.makefile("rb").read()
    read = asyncio.run(_read(way, request))

    assert said == read
    assert f"{reachable.pk}\n".encode() in said


async def _read(way, request):
    reader, writer = await channels.open_channel(way, request)
    try:
        return await reader.read()
    finally:
        writer.close()


def test_relay_lets_nobody_in_who_does_not_know_the_key(reachable, relaying, settings):
    with socket.create_connection(("127.0.0.1", relaying), 60) as stranger:
        heard = greeting.read(stranger.makefile("rb").readline())
        said = json.loads(greeting.request_line(heard, (reachable.pk, 1, 0), greeting.challenge()))
        stranger.sendall(greeting.line(**said | {"proof": "0" * 64}))

        assert stranger.recv(100) == b""


@pytest.mark.parametrize("said", [b"\n", b"[]\n", b'{"job": "x"}\n', b"x" * 10_000 + b"\n", b"[" * 4000 + b"\n", b""])
def test_relay_survives_what_is_no_greeting(relaying, said):
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", relaying), 60) as stranger:
            stranger.makefile("rb").readline()
            stranger.sendall(said)
            stranger.shutdown(socket.SHUT_WR)
            try:
                assert stranger.recv(100) == b""
            except ConnectionResetError:
                continue


def test_asker_trusts_no_relay_that_does_not_know_the_key():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def pretend():
            one, _ = server.accept()
            with one:
                one.sendall(greeting.line(challenge="a" * 32))
                one.makefile("rb").readline()
                one.sendall(greeting.line(proof="0" * 64))
                assert one.recv(100) == b""  # no request for one that is not ours

        thread = threading.Thread(target=pretend)
        thread.start()
        with pytest.raises(ChannelRefused) as caught:
            channels.connect(Way(None, server.getsockname()[:2], (1, 1, 0)), {"act": "session"})
        thread.join(60)

    assert caught.value.code == "unreachable"


def test_job_without_a_server_is_unreachable_through_the_relay(relaying, settings):
    way = SimpleNamespace(relay=("127.0.0.1", relaying), path=None, target=(7, 1, 0))

    with pytest.raises(ChannelRefused) as caught:
        channels.connect(way, {"act": "session"})

    assert caught.value.code == "unreachable"


def test_both_ways_loses_no_last_byte():
    """One side says much and hangs up at once, the other reads slowly."""
    sent, got = os.urandom(5 << 20), bytearray()

    async def carry():
        left, ours = socket.socketpair()
        other, right = socket.socketpair()
        mine, theirs = await _streams(ours), await _streams(other)
        carrying = asyncio.create_task(relay.copy_both_ways(mine, theirs))
        speaking = asyncio.create_task(_say(await _streams(left), sent))
        reader, writer = await _streams(right)
        while data := await reader.read(65536):
            got.extend(data)
            await asyncio.sleep(0.001)
        writer.close()
        await speaking
        await carrying

    asyncio.run(carry())

    assert bytes(got) == sent


async def _streams(end):
    return await asyncio.open_connection(sock=end)


async def _say(streams, words):
    streams[1].write(words)
    await relay.close(streams[1])
