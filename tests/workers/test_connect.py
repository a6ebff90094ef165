"""What leaves a job's own network and speaks no HTTP: git over ssh by Debian's programs, any TCP by `aip-connect`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import asyncssh
import pytest

from tests.workers.exec_client import Asked, served
from tests.workers.supervised import BEST, PYTHON, UID
from workers.execution.exec import egress, inside_programs, socket_paths
from workers.execution.exec.egress import Egress
from workers.supervisor import exec_socket, sandbox
from workers.supervisor.inside import connect

__all__ = ["served"]  # fixtures
pytestmark = [
    pytest.mark.sockets("proxies and servers of this machine"),
    pytest.mark.skipif(BEST < sandbox.BUBBLEWRAP, reason="no bubblewrap works here"),
]
needs_git = pytest.mark.skipif(not (shutil.which("git") and shutil.which("ssh")), reason="no git or no ssh is here")
TIERS = range(sandbox.BUBBLEWRAP, BEST + 1)
HOST = "forge.example"
ON_THE_WAY = "import time; print('up', flush=True); time.sleep(600)"


async def _pump(source, target):
    while data := await source.read(65536):
        target.write(data)


class Outside:
    """The world as jobs reach it: an SSH server with a repository, one that says in capitals what it hears, a proxy."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, []
        self.key, self.own = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        (folder / "authorized").write_bytes(self.own.export_public_key())

    @contextlib.asynccontextmanager
    async def open(self):
        ssh = await asyncssh.listen(
            "127.0.0.1", 0, server_host_keys=[self.key], authorized_client_keys=str(self.folder / "authorized"),
            process_factory=self._program, encoding=None,
        )  # fmt: skip
        loud = await asyncio.start_server(self._shout, "127.0.0.1", 0)
        self.ports = {22: ssh.get_port(), 5432: loud.sockets[0].getsockname()[1]}
        proxy = Egress([HOST, "inner.*"], self._found, egress.is_public)
        proxy.public = lambda address: address != "127.0.0.2"
        connect, proxy._connect = proxy._connect, lambda host, port: connect(host, self._noted(host, port))
        way_out = await egress.start(proxy)
        try:
            yield
        finally:
            for server in (way_out, loud, ssh):
                server.close()

    def _noted(self, host, port):
        self.asked.append((host, port))
        return self.ports.get(port, port)

    async def _found(self, host, _port):
        return ["127.0.0.1" if host == HOST else "127.0.0.2"]

    async def _program(self, process):
        command = process.command.replace("'/work.git'", str(self.folder / "work.git"))
        started = await asyncio.create_subprocess_shell(
            command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        typed = asyncio.create_task(_pump(process.stdin, started.stdin))
        await asyncio.gather(_pump(started.stdout, process.stdout), _pump(started.stderr, process.stderr))
        process.exit(await started.wait())
        typed.cancel()

    async def _shout(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data.upper())
        writer.close()


@pytest.fixture
def outside(settings):
    with tempfile.TemporaryDirectory(prefix="aip-o-") as folder:
        Path(folder).chmod(0o755)
        settings.RUN_DIR = Path(folder)
        socket_paths.egress().parent.mkdir()
        inside_programs.write_program(socket_paths.egress().parent, sandbox.CONNECT, "connect.py")
        world, begun, over = Outside(Path(folder)), threading.Event(), asyncio.Event()

        async def be():
            world.loop = asyncio.get_running_loop()
            async with world.open():
                begun.set()
                await over.wait()

        thread = threading.Thread(target=lambda: asyncio.run(be()))
        thread.start()
        try:
            assert begun.wait(20)
            yield world
        finally:
            world.loop.call_soon_threadsafe(over.set)
            thread.join(60)


@pytest.fixture
def job(served, outside):
    def one(tier, home):
        folder = socket_paths.egress().parent
        proxy = f"http://127.0.0.1:{exec_socket.PROXY_PORT}"
        env = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(home), "HTTPS_PROXY": proxy, "NO_PROXY": "127.0.0.1"}
        more = {"own_network": True, "egress_socket": str(socket_paths.egress()), "read_more": [str(folder), str(home)]}
        return served([PYTHON, "-I", "-S", "-c", ON_THE_WAY], tier, env=env, **more)

    return one


def ran(job, command):
    """Exit code, output and errors of a command inside."""
    with Asked(job.socket, act="session", command=command) as session:
        end = session.finish()
        return end.get("code"), session.said[b"O"].decode(), session.said[b"R"].decode()


@needs_git
@pytest.mark.parametrize("tier", TIERS)
def test_git_clones_and_pushes_over_ssh_without_being_told_how(job, outside, tier):
    """As Debian's git and ssh do it: their own words, the person's own key and known hosts in the home."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(outside.folder)]
    subprocess.run([*git, "init", "-q", "seed"], check=True)
    (outside.folder / "seed" / "model.py").write_text("print('here')\n")
    subprocess.run([*git[:-1], str(outside.folder / "seed"), "add", "."], check=True)
    subprocess.run([*git[:-1], str(outside.folder / "seed"), "commit", "-qm", "first"], check=True)
    subprocess.run([*git, "clone", "-q", "--bare", "seed", "work.git"], check=True)
    home = outside.folder / "home"
    keys = home / ".ssh"
    keys.mkdir(parents=True)
    (keys / "id_ed25519").write_bytes(outside.own.export_private_key())
    (keys / "known_hosts").write_bytes(f"{HOST} ".encode() + outside.key.export_public_key())
    for path in (home, keys, *keys.iterdir()):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.chown(path, *([UID, UID] if tier == sandbox.OWN_UID else [-1, -1]))

    running = job(tier, home)
    cloned = ran(running, f"cd /tmp && git clone -q ssh://git@{HOST}/work.git && cat work/model.py")
    pushed = ran(
        running,
        "cd /tmp/work && echo more > more.txt && git add . && git -c user.name=b -c user.email=b@example.org "
        f"commit -qm second && git push -q git@{HOST}:/work.git HEAD:refs/heads/second && echo pushed",
    )

    assert cloned[:2] == (0, "print('here')\n"), cloned
    assert pushed[:2] == (0, "pushed\n"), pushed
    heads = subprocess.run([*git[:-1], str(outside.folder / "work.git"), "branch"], capture_output=True, check=True)
    assert b"second" in heads.stdout
    assert outside.asked == [(HOST, 22), (HOST, 22)]


@pytest.mark.parametrize("tier", TIERS)
def test_any_tcp_goes_out_where_the_proxy_lets_it(job, outside, tier):
    home = outside.folder / "home"
    home.mkdir()
    running = job(tier, home)
    client = "import socket as s; c = s.create_connection(('127.0.0.1', 5432)); c.sendall(b'local'); print(c.recv(9))"

    piped = ran(running, f"echo select | aip-connect {HOST} 5432")
    wait = "for i in $(seq 100); do ss -ltn 2>/dev/null | grep -q :5432 && break; sleep 0.1; done"
    local = ran(running, f'aip-connect --listen 5432 {HOST} 5432 & {wait}; "{PYTHON}" -I -S -c "{client}"; kill %1')

    assert piped == (0, "SELECT\n", "")
    assert local[1] == "b'LOCAL'\n", local


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("inner.example 5432", "inner.example is an inner address, which jobs may not reach."),
        ("other.example 22", "other.example is not among the hosts that jobs may reach."),
        (f"{HOST} 25", "Jobs send no mail."),
        (f"{HOST}", "usage: aip-connect"),
        (f"{HOST} 99999", "usage: aip-connect"),
    ],
)
def test_refusal_of_the_proxy_is_said(job, outside, words, said):
    home = outside.folder / "home"
    home.mkdir()

    code, out, error = ran(job(BEST, home), f"aip-connect {words} < /dev/null")

    assert (code, out) == (255, "")
    assert said in error


@pytest.mark.parametrize(
    "proxy", ["http://proxy.house", "http://proxy.house/", "http://:3128", "http://proxy.house:web"]
)
def test_proxy_without_a_port_is_said(proxy):
    words = [PYTHON, "-I", "-S", connect.__file__, HOST, "22"]
    done = subprocess.run(words, env={"HTTPS_PROXY": proxy}, input="", capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (255, "")
    said = "HTTPS_PROXY names no host and port. Write it as http://HOST:PORT."
    assert done.stderr == f"aip-connect: {HOST}:22: {said}\n"


@pytest.mark.skipif(not shutil.which("ssh"), reason="no ssh is here")
def test_ssh_finds_the_program_wherever_it_lies(tmp_path):
    folder = tmp_path / "a run's %h"
    folder.mkdir()
    program = folder / sandbox.CONNECT
    program.write_text('#!/bin/sh\necho "$@" > "$(dirname "$0")/asked"\n')
    program.chmod(0o755)
    config = tmp_path / "ssh_config"
    config.write_bytes(sandbox._ssh_config(SimpleNamespace(egress_socket=str(folder / "proxy"))))

    subprocess.run(["ssh", "-F", config, "-p", "2022", HOST], capture_output=True, check=False)

    assert (folder / "asked").read_text() == f"{HOST} 2022\n"


def test_proxy_that_is_full_is_said(job, outside, monkeypatch):
    home = outside.folder / "home"
    home.mkdir()
    monkeypatch.setattr(egress, "MAX_CONNECTIONS_PER_JOB", 0)

    code, _out, error = ran(job(BEST, home), f"aip-connect {HOST} 22 < /dev/null")

    assert code == 255
    assert "This job has 0 connections open, which is the most. Close some." in error


def test_proxy_that_is_away_is_said(job, outside):
    home = outside.folder / "home"
    home.mkdir()
    running = job(BEST, home)
    socket_paths.egress().unlink()

    code, _out, error = ran(running, f"aip-connect {HOST} 22 < /dev/null")

    assert code == 255
    assert "exec_relay" in error
