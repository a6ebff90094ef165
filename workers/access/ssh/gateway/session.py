"""A shell, a command or the sftp subsystem: one act of the job's exec server, in frames."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import struct
from typing import TYPE_CHECKING, Any

import asyncssh

from workers.access.ssh.gateway.bridge import CHUNK, Bridge
from workers.execution.exec import channels

if TYPE_CHECKING:
    from workers.access.ssh.gateway.connection import Gateway

FRAME = struct.Struct(">cI")
KINDS = {b"O", b"R", b"X"}  # output, errors, the end
MAX_EARLY = 64  # sizes and signals, which no window bounds
COULD_NOT = 255  # as ssh itself ends where it came to nothing
SIGNAL = re.compile(r"[A-Z0-9]{2,10}\Z")


class Session(Bridge, asyncssh.SSHServerSession):
    """What a client runs. Its exit code is the program's own, also for sftp and so for scp."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self.pty: dict[str, Any] | None = None
        self.early: list[bytes] | None = []  # what came before the job answered

    def pty_requested(self, term: str, size: tuple[int, int, int, int], modes: object) -> bool:
        self.pty = {"term": term[:64] or "dumb", "columns": size[0] or 80, "rows": size[1] or 24}
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:  # `scp -O` and rsync come as commands
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        return subsystem == "sftp"

    def session_started(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        self.chan.pause_reading()  # what comes before the job answers stays with the client, but for one window
        try:
            self.reader, self.writer = await self.gateway.channel(self._request())
            for frame in self.early or ():
                self.send(frame)
            self.early = None
            if self._draining is None:  # else the job takes its time even with what came early
                self.chan.resume_reading()
            end = await self._listen()
        except (OSError, ValueError, EOFError, RecursionError, channels.ChannelRefused) as exc:
            end, self.early = {}, None
            self.chan.resume_reading()  # what nobody took is dropped, else the channel would not close
            with contextlib.suppress(OSError):  # nobody listens any more
                self.chan.write_stderr(f"{self.gateway.why(exc)}\r\n".encode())
        if signal := _signal_of(end):
            self.chan.exit_with_signal(signal)
        else:
            self.chan.exit(_code_of(end))  # without it scp and sftp end with 1 though every byte arrived

    def _request(self) -> dict[str, Any]:
        env = {str(key): str(value) for key, value in self.chan.get_environment().items()}
        env |= {"SSH_CONNECTION": self.gateway.ends, "SSH_CLIENT": " ".join(self.gateway.ends.split()[:2])}
        if self.chan.get_subsystem() == "sftp":
            return {"act": "sftp", "env": env}
        return {"act": "session", "command": self.chan.get_command(), "pty": self.pty, "env": env}

    async def _listen(self) -> Any:
        """Pass on what the program says; return how it ended, as the job tells it."""
        while True:
            kind, length = FRAME.unpack(await self.reader.readexactly(FRAME.size))
            if length > CHUNK or kind not in KINDS:
                raise ValueError
            payload = await self.reader.readexactly(length)
            if kind == b"X":
                return json.loads(payload)
            self.gateway.note_activity()
            await self.send_to_client(payload, None if kind == b"O" else asyncssh.EXTENDED_DATA_STDERR)

    def _frame(self, kind: bytes, payload: bytes = b"") -> None:
        for begin in range(0, max(len(payload), 1), CHUNK):
            part = payload[begin : begin + CHUNK]
            frame = FRAME.pack(kind, len(part)) + part
            if self.early is None:
                self.send(frame)
            elif kind in b"IE" or len(self.early) < MAX_EARLY:
                self.early.append(frame)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self.gateway.note_activity()
        self._frame(b"I", data)

    def eof_received(self) -> bool:
        self._frame(b"E")
        return True  # half-open: the program may have much to say

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        self._frame(b"W", b"%d %d" % (height, width))

    def signal_received(self, signal: str) -> None:
        self._frame(b"K", signal.encode())


def _signal_of(end: Any) -> str:
    """The signal that ended a program, "" for none; a job is not trusted to tell one."""
    name = end.get("signal") if isinstance(end, dict) else None
    return name if isinstance(name, str) and SIGNAL.match(name) else ""


def _code_of(end: Any) -> int:
    code = end.get("code") if isinstance(end, dict) else None
    return code if isinstance(code, int) and 0 <= code <= 255 else COULD_NOT
