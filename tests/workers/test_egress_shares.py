"""Connections outward: each job has its share of them, and hears when that is used up."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import tempfile
from pathlib import Path

import pytest

from tests.workers.exec_client import Asked, served
from tests.workers.supervised import BEST, PYTHON
from workers.execution.exec import egress, relay
from workers.execution.exec.egress import Egress
from workers.supervisor import sandbox

__all__ = ["served"]  # fixtures
pytestmark = pytest.mark.sockets("proxies of this machine")


def open_to(proxy, act):
    """What `act` returns, given a way to open connections to the proxy."""

    async def be(folder):
        server = await asyncio.start_unix_server(proxy.serve, folder / "s", limit=egress.MAX_BYTES)
        writers = []

        async def connect():
            reader, writer = await asyncio.open_unix_connection(folder / "s")
            writers.append(writer)
            return reader, writer

        try:
            return await asyncio.wait_for(act(connect), 60)
        finally:
            for writer in writers:
                writer.close()
            server.close()
            served = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.wait_for(asyncio.gather(*served, return_exceptions=True), 60)
            await asyncio.sleep(0)  # transports close a turn later

    with tempfile.TemporaryDirectory(prefix="aip-e-") as folder:
        return asyncio.run(be(Path(folder)))


def test_relay_lets_a_connection_too_many_go_at_once(monkeypatch):
    """Whoever waited for room would hold a file open, as many as there are of them."""
    monkeypatch.setattr(relay, "MAX_CHANNELS", 1)

    async def crowd(connect):
        _reader, first = await connect()
        first.write(b"G")
        reader, _second = await connect()
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""

    open_to(relay.Relay(), crowd)


@pytest.mark.parametrize(("of_one", "of_all", "said"), [(1, 9, b"This job has 1 "), (9, 1, b"Jobs of this machine")])
def test_connection_too_many_hears_so(of_one, of_all, said, monkeypatch):
    monkeypatch.setattr(egress, "MAX_CONNECTIONS_PER_JOB", of_one)
    monkeypatch.setattr(egress, "MAX_CONNECTIONS", of_all)
    monkeypatch.setattr(egress, "MAX_REFUSED", 1)
    proxy = Egress(["none"])

    async def crowd(connect):
        _reader, first = await connect()
        reader, second = await connect()
        beyond, _third = await connect()
        with contextlib.suppress(ConnectionResetError):
            assert await beyond.read() == b""  # no room to be told in
        second.write(b"CONNECT pypi.org:443 HTTP/1.1\r\n\r\n")
        answer = await reader.read()
        first.close()
        while proxy._open:  # the first one is gone
            await asyncio.sleep(0.01)
        again, fourth = await connect()
        fourth.write(b"CONNECT pypi.org:443 HTTP/1.1\r\n\r\n")
        return answer, await again.read()

    answer, again = open_to(proxy, crowd)

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert said in answer
    assert again.startswith(b"HTTP/1.1 403 ")


def test_job_that_fills_its_share_leaves_the_others_theirs(monkeypatch):
    monkeypatch.setattr(egress, "MAX_CONNECTIONS_PER_JOB", 2)
    names = iter(["first", "first", "first", "second"])
    monkeypatch.setattr(egress, "job_of", lambda _writer: next(names))

    async def crowd(connect):
        for _idle in range(2):
            await connect()
        answers = []
        for _job in ("first", "second"):
            reader, writer = await connect()
            writer.write(b"CONNECT pypi.org:443 HTTP/1.1\r\n\r\n")
            answers.append((await reader.read()).split()[1])
        return answers

    assert open_to(Egress(["none"]), crowd) == [b"503", b"403"]


@pytest.mark.parametrize("tier", range(sandbox.BUBBLEWRAP, BEST + 1))
def test_jobs_are_told_apart_by_their_networks(served, tier):
    """Two jobs of one person: two names, whatever process of a job connects."""
    with tempfile.TemporaryDirectory(prefix="aip-r-") as folder:
        Path(folder).chmod(0o755)
        way = Path(folder) / "s"
        more = {"own_network": True, "read_more": [folder]}
        jobs = [
            served([PYTHON, "-I", "-S", "-c", "import time; print('up', flush=True); time.sleep(600)"], tier, **more)
            for _ in range(2)
        ]
        connect = f"import socket as s; c = s.socket(s.AF_UNIX); c.connect('{way}'); c.recv(1)"

        def run(job):
            with Asked(job.socket, act="session", command=f'"{PYTHON}" -I -S -c "{connect}"') as session:
                assert session.finish() == {"code": 0}, session.said

        async def ask():
            names = []

            async def note(_reader, writer):
                names.append(egress.job_of(writer))
                writer.close()

            server = await asyncio.start_unix_server(note, way)
            way.chmod(0o666)
            for job in (jobs[0], jobs[0], jobs[1]):
                await asyncio.to_thread(run, job)
            server.close()
            return names

        first, again, other = asyncio.run(ask())

    assert first == again != other
    assert first.startswith("network ")


def test_proxy_takes_as_many_files_as_it_may():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[1]), before[1]))
    try:
        few = egress.most()
        egress.take_files()
        more, files = egress.most(), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert few == 64
    assert more == min(egress.MAX_CONNECTIONS, files // 4)
    assert files == min(before[1], 4 * egress.MAX_CONNECTIONS)
