"""Run a program inside a running job and wait for its end, for whoever needs its answer and no terminal."""

from __future__ import annotations

import json
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass

from workers.execution.exec import channels
from workers.execution.exec.channels import ChannelRefused, Way

FRAME = struct.Struct(">cI")  # as workers/supervisor/inside/sessions.py writes them
MAX_OUTPUT_BYTES = 1 << 16
_PART = 1 << 15


@dataclass(frozen=True)
class Ended:
    """How it ended. `code` is None where a signal ended it; `output` is what it printed, at most 64 KiB."""

    code: int | None
    output: str


def run(route: Way, command: str, *, stdin: bytes = b"", patience_s: float) -> Ended:
    """Run a command line in the job's own shell, as the job's user. Its output is not trusted.

    Raises:
        ChannelRefused: the job cannot be reached, or the program did not end in time.
    """
    deadline = time.monotonic() + patience_s
    channel = channels.connect(route, {"act": "session", "command": command, "env": {}}, patience_s=patience_s)
    with channel:
        try:
            channel.settimeout(patience_s)
            with suppress(BrokenPipeError, ConnectionResetError):  # it ended before it was told that its input did
                for begin in range(0, len(stdin), _PART):
                    channel.sendall(_frame(b"I", stdin[begin : begin + _PART]))
                channel.sendall(_frame(b"E", b""))
            return _ended(channel, deadline)
        except (OSError, ValueError, RecursionError) as exc:
            raise ChannelRefused("unreachable") from exc


def _ended(channel: socket.socket, deadline: float) -> Ended:
    output = b""
    while True:
        kind, length = FRAME.unpack(_exactly(channel, FRAME.size, deadline))
        if length > 1 << 20:
            raise ValueError("no frame is so long")
        payload = _exactly(channel, length, deadline)
        if kind == b"O" and len(output) < MAX_OUTPUT_BYTES:
            output += payload
        elif kind == b"X":
            how = json.loads(payload)
            code = how.get("code") if isinstance(how, dict) else None
            text = output[:MAX_OUTPUT_BYTES].decode(errors="replace")
            return Ended(code if isinstance(code, int) else None, text)


def _exactly(channel: socket.socket, size: int, deadline: float) -> bytes:
    data = b""
    while len(data) < size:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        channel.settimeout(left_s)
        part = channel.recv(size - len(data))
        if not part:
            raise ConnectionError
        data += part
    return data


def _frame(kind: bytes, payload: bytes) -> bytes:
    return FRAME.pack(kind, len(payload)) + payload
