"""A gateway in the test's own loop, clients for it, and a job that is only a pair of sockets."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from contextlib import asynccontextmanager

import asyncssh
import pytest
from channels.db import database_sync_to_async

from accounts.services import ssh_keys
from tests.factories import work
from workers.access.ssh.gateway import hub, server
from workers.access.ssh.gateway.session import FRAME
from workers.execution.exec import channels

logging.getLogger("asyncssh").setLevel(logging.WARNING)  # else every channel is told, of thousands

KEY = asyncssh.generate_private_key("ssh-ed25519")
SOON_S = 60
OTHER = asyncssh.generate_private_key("ssh-ed25519")


def line(key: asyncssh.SSHKey) -> str:
    """The public line as a person pastes it."""
    return key.export_public_key().decode().strip()


def add_key(user, key=KEY, name="laptop"):
    return ssh_keys.add(user=user, name=name, line=line(key))


def in_thread(call):
    """A function that uses the database, for tests that are coroutines."""
    return database_sync_to_async(call)


@asynccontextmanager
async def gateway(monkeypatch=None):
    """A gateway on a port of its own: (hub, port); quick to look after its sessions."""
    if monkeypatch:
        for name in ("LOOK_S", "WRITE_S"):
            monkeypatch.setattr(hub, name, 0.05)
    async with server.listening("127.0.0.1", 0) as (running, port):
        yield running, port


def connect(port, name, *, key=None, password=None, **more):
    """Sign in as asyncssh's client does; a coroutine-like connection."""
    return asyncssh.connect(
        "127.0.0.1", port, username=str(name), known_hosts=None, config=None, agent_path=None,
        **{"client_keys": [key] if key else []} | ({"password": password} if password else {}) | more,
    )  # fmt: skip


class PlainJob:
    """A job that answers every request by itself: a session prints its request and ends with a code."""

    def __init__(self, monkeypatch) -> None:
        self.requests: list[dict] = []
        self.code = 7
        self.answer = {"ok": True}
        self.refuses = ""
        self.lasting = False
        self.odd = b""
        monkeypatch.setattr(channels, "way_to", lambda job, rank=0: job)
        monkeypatch.setattr(channels, "open_with_reply", self.begin)
        self._kept = []

    async def begin(self, way, request, patience_s=10.0):
        self.requests.append(request)
        if self.refuses:
            raise channels.ChannelRefused(self.refuses)
        ours, theirs = socket.socketpair()
        streams = await asyncio.open_unix_connection(sock=ours)
        reader, writer = await asyncio.open_unix_connection(sock=theirs)
        self._kept.append(asyncio.create_task(self._serve(request, reader, writer)))
        return self.answer, *streams

    async def _serve(self, request, reader, writer):
        if self.odd:
            writer.write(self.odd)
        elif request["act"] == "session":
            said = json.dumps(request).encode()
            writer.write(FRAME.pack(b"O", len(said)) + said)
            if not self.lasting:
                end = json.dumps({"code": self.code}).encode()
                writer.write(FRAME.pack(b"X", len(end)) + end)
        while data := await reader.read(65536):
            if request["act"] != "session":
                writer.write(data)
        writer.close()

    async def close(self):
        for task in self._kept:
            task.cancel()
        await asyncio.gather(*self._kept, return_exceptions=True)


@pytest.fixture
def job(alice, cluster):
    return work.job(alice, cluster, state="running")


@pytest.fixture
async def inside(monkeypatch):
    made = PlainJob(monkeypatch)
    yield made
    await made.close()


@pytest.fixture
def alices_key(alice):
    return add_key(alice)


async def until(look):
    """Wait for a condition on rows."""
    async with asyncio.timeout(SOON_S):
        while not (found := await in_thread(look)()):
            await asyncio.sleep(0.02)
    return found
