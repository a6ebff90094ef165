"""A caller of exec servers, as tests speak to them: blocking, frame by frame."""

from __future__ import annotations

import json
import os
import socket
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.running import wait_for as until
from tests.workers.supervised import BEST, PYTHON
from workers.supervisor import exec_socket, processes, records

FRAME = struct.Struct(">cI")
PATIENCE_S = 60
WAITS = [PYTHON, "-I", "-S", "-c", "import time; print('up', flush=True); time.sleep(600)"]


class Asked:
    """One channel, its answer read."""

    def __init__(self, path: Path | str, patience_s: float = PATIENCE_S, **request: Any) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(patience_s)
        try:
            self.socket.connect(str(path))
            self.socket.sendall(json.dumps(request).encode() + b"\n")
            self.file = self.socket.makefile("rb")
            self.answer = json.loads(self.file.readline() or "{}")
        except BaseException:
            self.socket.close()
            raise
        self.said: dict[bytes, bytes] = {b"O": b"", b"R": b""}
        self.end: dict[str, Any] = {}

    def tell(self, kind: bytes, payload: bytes = b"") -> None:
        self.socket.sendall(FRAME.pack(kind, len(payload)) + payload)

    def frame(self) -> tuple[bytes, bytes]:
        """The next frame; nothing at the end."""
        head = self.file.read(FRAME.size)
        if not head:
            return b"", b""
        kind, length = FRAME.unpack(head)
        payload = self.file.read(length)
        if kind == b"X":
            self.end = json.loads(payload)
        else:
            self.said[kind] += payload
        return kind, payload

    def until(self, words: bytes) -> None:
        """Read until the program said this."""
        while words not in self.said[b"O"]:
            assert self.frame()[0], f"it ended without {words!r}: {self.said}"

    def line(self) -> dict[str, Any]:
        """The next line, of an act that tells by lines."""
        return json.loads(self.file.readline())

    def finish(self) -> dict[str, Any]:
        """Read to the end; how the program ended."""
        while self.frame()[0]:
            pass
        return self.end

    def bytes(self) -> bytes:
        """All bytes to the end, of a channel without frames."""
        return self.file.read()

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.fixture
def served(run):
    """Starts commands with an exec server beside them, and waits until they say that they are up."""
    with tempfile.TemporaryDirectory(prefix="aip-x-") as folder:  # the kernel takes 107 bytes of a path

        def one(argv, tier=BEST, *, started=True, **more):
            path = Path(folder) / str(len(os.listdir(folder))) / "exec"
            path.parent.mkdir(mode=0o700)
            job = run(
                argv, tier, exec_socket=str(path), read_only=[exec_socket.INSIDE, *more.pop("read_more", [])], **more
            )
            job.socket = path
            if started:
                until(lambda: "up" in job.log())
            return job

        yield one


def server_of(job):
    """The pid of the server itself: acts are its children, and carry its name."""
    named = [pid for pid in job.programs() if processes.name(pid) == exec_socket.NAME]
    tops = [pid for pid in named if parent(pid) not in named]
    return tops[0] if len(tops) == 1 else 0


def parent(pid):
    return int(records.text(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[1])
