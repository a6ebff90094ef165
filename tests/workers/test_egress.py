"""The way out of jobs with a network of their own: what may be reached, and what never."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from ipaddress import ip_address
from pathlib import Path

import pytest
from django.db import OperationalError

from aiplatform import env
from tests import special_addresses as special
from tests.cases import case_table
from tests.running import MANAGE, environment, free_port, wait_for
from tests.workers.exec_client import Asked, served
from tests.workers.launched import node, placed
from tests.workers.supervised import BEST, PYTHON
from workers.core.kinds import Launch
from workers.execution import launch as launching
from workers.execution import tickets
from workers.execution.exec import closed_addresses, egress, greeting, socket_paths
from workers.execution.exec.closed_addresses import ClosedAddresses
from workers.execution.exec.egress import Egress
from workers.management.commands import exec_relay
from workers.supervisor import exec_socket, sandbox

__all__ = ["node", "placed", "served"]  # fixtures
pytestmark = pytest.mark.sockets("proxies and servers of this machine")


@case_table("kind", [*special.SPECIAL, "with a scope"])
def test_inner_address_is_not_public(kind):
    """The proxy judges addresses as webhooks are judged: by one table."""
    addresses = special.SPECIAL.get(kind, ("fe80::1%eth0", "::1%lo"))

    assert [address for address in addresses if egress.is_public(address)] == []


@case_table("address", special.PUBLIC)
def test_address_of_the_internet_is_public(address):
    assert egress.is_public(address)


@contextlib.asynccontextmanager
async def origin():
    """A server that answers with the head it was asked, and then echoes, unless a page was asked for."""

    async def serve(reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + head)
            while not head.startswith(b"GET ") and (data := await reader.read(65536)):
                writer.write(data.upper())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def asked(request, *, allowed=("*",), addresses=("127.0.0.1",), public=lambda _: True, closed=None, end=True):
    """What the proxy and the origin behind it answer; PORT in the request is the origin's."""

    async def ask():
        async def found(host, port):
            if not addresses:
                raise OSError("no such host")
            return addresses

        async with origin() as port:
            proxy = Egress(
                [entry.replace("PORT", str(port)) for entry in allowed], found, public, *([closed] if closed else [])
            )
            with tempfile.TemporaryDirectory(prefix="aip-e-") as folder:
                server = await asyncio.start_unix_server(proxy.serve, Path(folder) / "s", limit=egress.MAX_BYTES)
                reader, writer = await asyncio.open_unix_connection(Path(folder) / "s")
                writer.write(request.replace(b"PORT", str(port).encode()))
                if end:
                    writer.write_eof()
                answer = await asyncio.wait_for(reader.read(), 60)
                writer.close()
                server.close()
                return answer

    return asyncio.run(ask())


def test_plain_request_is_passed_on_without_what_is_the_proxys():
    said = asked(
        b"GET http://pypi.example:PORT/simple/?a=1 HTTP/1.1\r\nHost: pypi.example\r\nProxy-Authorization: x\r\n"
        b"Connection: keep-alive\r\nAccept: */*\r\n\r\n"
    )

    assert said.startswith(b"HTTP/1.1 200 OK")
    assert b"GET /simple/?a=1 HTTP/1.1\r\nHost: pypi.example\r\nAccept: */*\r\nConnection: close\r\n\r\n" in said
    assert b"Proxy" not in said


def test_connect_carries_bytes_both_ways():
    said = asked(b"CONNECT files.example:PORT HTTP/1.1\r\n\r\nhello\r\n\r\nmore")

    assert said == b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhello\r\n\r\nMORE"


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254"])
@pytest.mark.parametrize("request_", [b"CONNECT innocent.example:443", b"GET http://innocent.example/"])
def test_name_of_an_inner_address_is_refused(request_, address):
    assert asked(request_ + b" HTTP/1.1\r\n\r\n", addresses=("1.1.1.1", address), public=egress.is_public).startswith(
        b"HTTP/1.1 403 "
    )


@case_table(
    ("allowed", "host", "status"),
    [
        (["pypi.org"], "pypi.org", b"200"),
        (["PyPI.org"], "pypi.ORG.", b"200"),
        (["pypi.org"], "evilpypi.org", b"403"),
        (["*.pythonhosted.org"], "files.pythonhosted.org", b"200"),
        (["*.pythonhosted.org"], "pythonhosted.org.evil.example", b"403"),
        (["pypi.org:PORT"], "pypi.org", b"200"),
        (["pypi.org:1"], "pypi.org", b"403"),
        (["*.pythonhosted.org:PORT"], "files.pythonhosted.org", b"200"),
        (["*:1"], "pypi.org", b"403"),
        (["[fd00::5]:PORT", "[2001:db8::1]"], "[fd00::5]", b"200"),
        (["[fd00::5]:PORT", "[2001:db8::1]"], "[2001:db8::1]", b"200"),
        (["[fd00::5]:1", "fd00::6"], "[fd00::5]", b"403"),
        (["none"], "none", b"403"),
        (["none"], "pypi.org", b"403"),
    ],
)
def test_only_allowed_hosts_are_reached(allowed, host, status):
    said = asked(f"CONNECT {host}:PORT HTTP/1.1\r\n\r\n".encode(), allowed=allowed)

    assert said.split()[1] == status


@pytest.mark.parametrize(
    ("allowed", "status"),
    [
        (["mirror.example"], b"200"),
        (["*"], b"403"),
        (["*.example"], b"403"),
        (["*", "mirror.example"], b"200"),
        (["*", "mirror.example:PORT"], b"200"),
        (["*", "mirror.example:1"], b"403"),
    ],
)
def test_inner_host_is_reached_only_where_its_whole_name_is_allowed(allowed, status):
    said = asked(b"CONNECT mirror.example:PORT HTTP/1.1\r\n\r\n", allowed=allowed, public=egress.is_public)

    assert said.split()[1] == status


@case_table("allowed", [["*"], ["*", "git.example.org"], ["*.", "[a-z]*"]])
@case_table("host", ["*", "*.", "*..", "**", "."])
@case_table("request_", ["CONNECT {}:PORT", "GET http://{}:PORT/"])
def test_name_that_resolvers_take_for_this_machine_is_no_host(request_, host, allowed):
    """glibc's own answer for "*" is the loopback; no entry of the list names that."""
    said = asked(f"{request_.format(host)} HTTP/1.1\r\n\r\n".encode(), allowed=allowed)

    assert said.startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "request_",
    ["GET /", "CONNECT x", "odd", "GET https://a.example/", "CONNECT a:99999", "GET ftp://a/", "GET http://ä/"],
)
def test_what_is_no_proxy_request_is_told_so(request_):
    assert asked(f"{request_} HTTP/1.1\r\n\r\n".encode()).startswith(b"HTTP/1.1 400 ")


def test_host_that_is_not_found_and_mail_are_refused():
    assert asked(b"CONNECT no.example:443 HTTP/1.1\r\n\r\n", addresses=()).startswith(b"HTTP/1.1 502 ")
    assert asked(b"CONNECT mail.example:25 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("tier", range(2, BEST + 1))
def test_job_on_a_network_of_its_own_finds_the_way_out(served, settings, tier):
    """Through the exec server's port inside, the mounted socket and the proxy to a server of this machine."""
    with tempfile.TemporaryDirectory(prefix="aip-r-") as folder:
        settings.RUN_DIR = Path(folder)
        path = socket_paths.egress()
        path.parent.mkdir()
        more = {"own_network": True, "egress_socket": str(path), "read_more": [str(path.parent)]}
        job = served([PYTHON, "-I", "-S", "-c", "import time; print('up', flush=True); time.sleep(600)"], tier, **more)

        def fetch():
            proxy = f"{{'http': 'http://127.0.0.1:{exec_socket.PROXY_PORT}'}}"
            program = f"import urllib.request as u; o = u.build_opener(u.ProxyHandler({proxy})); " + (
                "print(o.open('http://somewhere.example/path', timeout=60).read().decode())"
            )
            with Asked(job.socket, act="session", command=f'"{PYTHON}" -I -S -c "{program}"') as session:
                return session.finish(), session.said

        async def ask():
            async with origin() as port:

                async def found(host, _port):
                    assert host == "somewhere.example"
                    return ["127.0.0.1"]

                proxy = Egress(["*"], found, lambda _: True)
                connect, proxy._connect = proxy._connect, lambda host, _port: connect(host, port)
                for _restarted in range(2):  # jobs live longer than the proxy
                    server = await egress.start(proxy)
                    end, said = await asyncio.to_thread(fetch)
                    server.close()
                    assert end == {"code": 0}, said
                return said

        said = asyncio.run(ask())

    assert b"GET /path HTTP/1.1" in said[b"O"]


def test_proxy_that_ends_late_leaves_the_socket_of_its_successor():
    async def follow():
        first = await egress.start(Egress(["none"]))
        second = await egress.start(Egress(["none"]))
        first.close()
        stays = second.path.exists()
        second.close()
        return stays, second.path.exists()

    assert asyncio.run(follow()) == (True, False)


@pytest.mark.django_db(transaction=True)
def test_launch_gets_a_network_of_its_own_and_the_way_out_where_it_asks(placed, kind, settings, monkeypatch):
    settings.RUN_DIR = settings.DATA_ROOT / "r"
    kind.exec_server = True

    _job, attempt = placed(["true"])
    held = launching.by_rank(attempt)[0]

    def made(**launch):
        return tickets.make(attempt, 0, held, Launch(argv=["true"], **launch))

    alone, shared = made(own_network=True), made()

    assert (shared.own_network, shared.egress_socket, "HTTPS_PROXY" in shared.env) == (False, "", False)
    assert alone.own_network == (tickets.tier()[0] >= sandbox.BUBBLEWRAP)
    if alone.own_network:
        assert alone.egress_socket == str(socket_paths.egress())
        assert str(socket_paths.egress().parent) in alone.read_only
        assert alone.env["https_proxy"] == alone.env["PIP_PROXY"] == "http://127.0.0.1:3128"
        monkeypatch.setattr(env, "EGRESS_ALLOWED", ["none"])
        closed = made(own_network=True)
        assert (closed.own_network, closed.egress_socket, "HTTP_PROXY" in closed.env) == (True, "", False)
    kind.exec_server = False
    assert not made(own_network=True).own_network


@pytest.mark.proof
def test_exec_relay_serves_both_roads_until_it_is_told_to_end():
    """The process as `up` starts it."""
    with tempfile.TemporaryDirectory(prefix="aip-r-") as folder:
        port = free_port()
        more = {"AIP_NODE_ADDRESS": "127.0.0.1", "AIP_EXEC_PORT": str(port), "AIP_EGRESS_ALLOWED": "none"}
        command = [sys.executable, MANAGE, "exec_relay"]
        with subprocess.Popen(command, env={**os.environ, **environment(Path(folder)), **more}) as process:
            way_out = Path(folder) / "run" / "egress" / "proxy"
            wait_for(way_out.is_socket)
            with socket.socket(socket.AF_UNIX) as asking:
                wait_for(lambda: not asking.connect_ex(str(way_out)))
                asking.sendall(b"CONNECT pypi.org:443 HTTP/1.1\r\n\r\n")
                assert asking.recv(100).startswith(b"HTTP/1.1 403 ")
            with wait_for(lambda: _connected(port)) as asking:
                assert "challenge" in greeting.read(asking.makefile("rb").readline())
            process.terminate()
            assert process.wait(60) == 0


def _connected(port):
    try:
        return socket.create_connection(("127.0.0.1", port), 60)
    except OSError:
        return None


def test_head_that_is_too_long_is_told_so():
    assert asked(b"G" * (egress.MAX_BYTES + 4)).startswith(b"HTTP/1.1 400 ")


def test_connection_that_says_nothing_for_long_is_closed(monkeypatch):
    monkeypatch.setattr(egress, "IDLE_S", 0.5)

    said = asked(b"CONNECT files.example:PORT HTTP/1.1\r\n\r\n", end=False)

    assert said.startswith(b"HTTP/1.1 200 ")


@pytest.mark.django_db  # the thread of the lookup may hold a connection that an earlier test opened
@pytest.mark.parametrize(
    ("allowed", "address", "status"),
    [
        (["*"], "198.18.0.7", b"403"),  # a machine of the platform
        (["*"], "203.0.113.9", b"403"),  # a network that the operator closed
        (["*"], "64:ff9b::203.0.113.9", b"403"),
        (["*"], "127.0.0.1", b"200"),
        (["*", "gpu-02.example"], "127.0.0.2", b"502"),  # let through, and nobody is there
        (["*"], "127.0.0.2", b"403"),
    ],
)
def test_proxy_as_it_is_set_up_refuses_machines_of_the_platform(allowed, address, status, monkeypatch):
    monkeypatch.setattr(env, "EGRESS_REFUSED", ["203.0.113.0/24"])
    monkeypatch.setattr(closed_addresses, "machines", lambda: {ip_address("198.18.0.7"), ip_address("127.0.0.2")})
    monkeypatch.setattr(env, "EGRESS_ALLOWED", allowed)

    closed = exec_relay.way_out().closed
    said = asked(b"CONNECT gpu-02.example:PORT HTTP/1.1\r\n\r\n", allowed=allowed, addresses=[address], closed=closed)

    assert said.split()[1] == status


@pytest.mark.django_db  # the thread of the lookup may hold a connection that an earlier test opened
def test_proxy_says_so_where_machines_are_not_known(monkeypatch):
    def away():
        raise OperationalError("away")

    monkeypatch.setattr(closed_addresses, "machines", away)

    said = asked(b"CONNECT a.example:PORT HTTP/1.1\r\n\r\n", closed=ClosedAddresses([]).hold)

    assert said.startswith(b"HTTP/1.1 503 ")
    assert b"database does not answer" in said
