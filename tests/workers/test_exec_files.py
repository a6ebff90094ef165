"""Files of a job by SFTP, and what listens inside for people outside, through the exec server."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import struct
import subprocess
import sys

import pytest

from tests.running import wait_for as until
from tests.workers.exec_client import Asked, served
from tests.workers.supervised import BEST, PYTHON
from workers.supervisor import exec_socket

__all__ = ["served"]  # a fixture
pytestmark = pytest.mark.sockets("exec servers of jobs")
TIERS = pytest.mark.parametrize("tier", range(BEST + 1))
OWN_NETWORK = pytest.mark.parametrize("tier", range(2, BEST + 1))
WAITS = [PYTHON, "-I", "-S", "-c", "import time; print('up', flush=True); time.sleep(600)"]
OK, EOF, NO_FILE, FAILURE, BAD, UNSUPPORTED = 0, 1, 2, 4, 5, 8


def text(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


class Client:
    """Just enough of SFTP."""

    def __init__(self, asked: Asked) -> None:
        self.asked, self.number, self.at = asked, 0, 0
        asked.tell(b"I", struct.pack(">IBI", 5, 1, 3))
        self.version = self._packet()[:5]

    def _packet(self) -> bytes:
        said = self.asked.said
        while len(said[b"O"]) < self.at + 4 or len(said[b"O"]) < self.at + 4 + self._length():
            assert self.asked.frame()[0] == b"O", said[b"R"]
        found = said[b"O"][self.at + 4 : self.at + 4 + self._length()]
        self.at += 4 + len(found)
        return found

    def _length(self) -> int:
        return struct.unpack_from(">I", self.asked.said[b"O"], self.at)[0]

    def ask(self, kind: int, body: bytes) -> tuple[int, bytes]:
        """The kind and body of the reply to one request."""
        self.number += 1
        packet = struct.pack(">BI", kind, self.number) + body
        self.asked.tell(b"I", struct.pack(">I", len(packet)) + packet)
        reply = self._packet()
        assert struct.unpack_from(">I", reply, 1) == (self.number,)
        return reply[0], reply[5:]

    def status(self, kind: int, body: bytes) -> int:
        answered, reply = self.ask(kind, body)
        assert answered == 101
        return struct.unpack_from(">I", reply)[0]

    def handle(self, kind: int, body: bytes) -> bytes:
        answered, reply = self.ask(kind, body)
        assert answered == 102, reply
        return reply


@TIERS
def test_sftp_writes_reads_lists_and_ends_with_its_code(served, tier):
    job = served(WAITS, tier, env={"HOME": "/tmp"})
    place = str(job.path / "outputs").encode()
    sent = os.urandom(200_000)
    with Asked(job.socket, act="sftp") as asked:
        client = Client(asked)
        assert client.version == struct.pack(">BI", 2, 3)

        assert client.status(14, text(place + b"/new") + struct.pack(">I", 0)) == OK
        opened = client.handle(3, text(place + b"/new/a") + struct.pack(">III", 0x1A, 4, 0o600))
        assert client.status(6, opened + struct.pack(">Q", 0) + text(sent)) == OK
        assert client.status(4, opened) == OK
        opened = client.handle(3, text(place + b"/new/a") + struct.pack(">II", 1, 0))
        kind, body = client.ask(5, opened + struct.pack(">QI", 100_000, 200_000))
        assert (kind, body[4:]) == (103, sent[100_000:])
        assert client.status(5, opened + struct.pack(">QI", 200_000, 1)) == EOF
        folder = client.handle(11, text(place + b"/new"))
        kind, body = client.ask(12, folder)
        assert (kind, b"a" in body, client.status(12, folder)) == (104, True, EOF)
        assert client.status(18, text(place + b"/new/a") + text(place + b"/b")) == OK
        asked.tell(b"E")
        assert asked.finish() == {"code": 0}

    found = job.path / "outputs" / "b"
    assert (found.read_bytes(), stat.S_IMODE(found.stat().st_mode)) == (sent, 0o600)


def test_sftp_refuses_and_goes_on(served):
    job = served(WAITS)
    with Asked(job.socket, act="sftp") as asked:
        client = Client(asked)

        told = [
            client.status(7, text(b"/no/such")),
            client.status(4, text(b"no handle")),
            client.status(99, b""),
            client.status(7, b"\0\0"),
            client.status(5, text(b"7") + struct.pack(">QI", 2**64 - 1, 9)),
            client.status(16, b"\0\0\0\xffx"),
        ]
        kind, _ = client.ask(16, text(b"."))

    assert told == [NO_FILE, BAD, UNSUPPORTED, BAD, BAD, BAD]
    assert kind == 104


@pytest.mark.skipif(not shutil.which("sftp"), reason="OpenSSH's client is not on this machine")
def test_sftp_of_openssh_copies_a_tree(tmp_path):
    """Its own client, on the server's pipes."""
    (tmp_path / "tree" / "below").mkdir(parents=True)
    (tmp_path / "tree" / "below" / "file").write_bytes(os.urandom(700_000))
    (tmp_path / "batch").write_text(
        f"put -pR {tmp_path}/tree {tmp_path}/there\nget -pR {tmp_path}/there {tmp_path}/back\nls -l {tmp_path}/there\n"
        f"rename {tmp_path}/there/below/file {tmp_path}/moved\ndf {tmp_path}\n-get /no/such\n"
    )
    server = f"{sys.executable} -I -S {exec_socket.INSIDE}/sftp_server.py"

    done = subprocess.run(
        ["sftp", "-b", str(tmp_path / "batch"), "-D", server], capture_output=True, text=True, check=False, timeout=120
    )

    assert done.returncode == 0, done.stderr
    same = (tmp_path / "tree/below/file").read_bytes()
    assert (tmp_path / "back/below/file").read_bytes() == same == (tmp_path / "moved").read_bytes()


@TIERS
def test_listening_inside_reaches_whoever_asked(served, tier):
    job = served(WAITS, tier)
    with Asked(job.socket, act="listen", port=0) as listening:
        port, key = listening.answer["port"], listening.answer["key"]
        program = f"import socket; s = socket.create_connection(('127.0.0.1', {port})); s.sendall(b'from inside'); " + (
            "s.shutdown(1); print(s.makefile().read())"
        )
        with Asked(job.socket, act="session", command=f'"{PYTHON}" -I -S -c "{program}"') as session:
            told = listening.line()
            with Asked(job.socket, act="accept", key=key, id=told["id"]) as accepted:
                assert accepted.file.read() == b"from inside"
                accepted.socket.sendall(b"from outside")
                accepted.socket.shutdown(socket.SHUT_WR)
                assert session.finish() == {"code": 0}
        with Asked(job.socket, act="accept", key=key.partition(".")[0] + ".guess", id=told["id"]) as guess:
            assert "no such connection" in guess.answer["error"]
        with Asked(job.socket, act="accept", key=key, id=told["id"]) as twice:
            assert "no such connection" in twice.answer["error"]

    assert session.said[b"O"] == b"from outside\n"
    until(lambda: "error" in _accept(job, key).answer)


def test_connections_that_nobody_takes_up_do_not_keep_out_later_ones(served):
    job = served(WAITS, 0)
    with Asked(job.socket, act="listen", port=0) as listening:
        port = listening.answer["port"]
        program = f"import socket; kept = [socket.create_connection(('127.0.0.1', {port})) for _ in range(40)]; input()"
        with Asked(job.socket, act="session", command=f'"{PYTHON}" -I -S -c "{program}"'):
            told = [listening.line()["id"] for _ in range(40)]

    assert told == list(range(1, 41))


def _accept(job, key):
    with Asked(job.socket, act="accept", key=key, id=1) as asked:
        return asked


@OWN_NETWORK
def test_own_network_has_its_own_ports_and_no_others(served, tier):
    job = served(WAITS, tier, own_network=True)
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        number = foreign.getsockname()[1]
        look = f"import socket; socket.create_connection(('127.0.0.1', {number}), 5)"
        with Asked(job.socket, act="session", command=f'"{PYTHON}" -I -S -c "{look}"') as session:
            assert session.finish() == {"code": 1}
        taken = f"import socket; s = socket.create_server(('127.0.0.1', {number})); print('up', flush=True); s.accept()"
        with Asked(job.socket, act="session", command=f'"{PYTHON}" -I -S -c "{taken}"') as session:
            session.until(b"up")
            with Asked(job.socket, act="port", port=number) as port:
                assert port.answer == {"ok": True}
            assert session.finish() == {"code": 0}

    assert b"ConnectionRefused" in session.said[b"R"] or session.said[b"R"] == b""
