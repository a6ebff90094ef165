"""Programs that people start inside a job: a shell on a terminal, a command on pipes.

Frames: one byte of kind, four of length, the payload.

| in | | out | |
|---|---|---|---|
| `I` | for its stdin | `O` | from its stdout, or its terminal |
| `E` | its stdin ends | `R` | from its stderr |
| `W` | "rows columns" of its window | `X` | its end: {"code": 0} or {"signal": "TERM"} |
| `K` | a signal for it by name: "INT" | | |
"""

import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import termios

from workers.supervisor.inside.requests import answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

    from workers.supervisor.inside.requests import Job, Request

CHUNK, MAX_WAITING_BYTES, MAX_FRAME_BYTES = 65536, 524288, 1 << 20
FRAME = struct.Struct(">cI")
WANTED_ENV = ("LANG", "LC_", "COLORTERM", "TERM_PROGRAM", "GIT_AUTHOR_", "GIT_COMMITTER_", "SSH_C")


def session(connection: socket.socket, request: "Request", job: "Job") -> None:
    """Start a shell, or a command in one: on a terminal of its own or on pipes. No login shell: it resets PATH."""
    env = _environment(request, job)
    shell = _shell(env)
    command = request.get("command")
    argv = [shell] if command is None else [shell, "-c", str(command)]
    pty = request.get("pty")
    if isinstance(pty, dict):
        _on_terminal(connection, argv, env, pty, _folder(request, env))
    else:
        on_pipes(connection, argv, env, _folder(request, env))


def sftp(connection: socket.socket, request: "Request", job: "Job") -> None:
    """Start a file transfer: its paths are the job's, and it may what the job may."""
    env = _environment(request, job)
    argv = [sys.executable, "-I", "-S", os.path.join(os.path.dirname(os.path.realpath(__file__)), "sftp_server.py")]
    on_pipes(connection, argv, env, _folder(request, env))


def _environment(request: "Request", job: "Job") -> "dict[str, str]":
    requested = request.get("env") or {}
    extra = {str(name): str(value) for name, value in requested.items() if str(name).startswith(WANTED_ENV)}
    return {**job.env, **extra}


def _shell(env: "dict[str, str]") -> str:
    wanted = (env.get("SHELL", ""), "/bin/bash", "/usr/bin/bash")
    return next((path for path in wanted if path.startswith("/") and os.access(path, os.X_OK)), "/bin/sh")


def _folder(request: "Request", env: "dict[str, str]") -> str:
    wanted = (request.get("cwd") or "", env.get("HOME", ""))
    return next((path for path in wanted if isinstance(path, str) and os.path.isdir(path)), "/")


def _on_terminal(
    connection: socket.socket, argv: "list[str]", env: "dict[str, str]", pty: "dict[str, Any]", folder: str
) -> None:
    parent_end, child_end = os.openpty()
    _resize(parent_end, int(pty.get("rows", 24)), int(pty.get("columns", 80)))
    env = env | {"TERM": str(pty.get("term") or "xterm-256color"), "SSH_TTY": os.ttyname(child_end)}
    pid = _start(argv, env, (child_end, child_end, child_end), folder, terminal=True)
    os.close(child_end)
    answer(connection, {"ok": True})
    Conversation(connection, pid, parent_end, {parent_end: b"O"}, terminal=parent_end).carry()


def on_pipes(connection: socket.socket, argv: "list[str]", env: "dict[str, str]", folder: str) -> None:
    """Start a program on three pipes and carry what goes through them."""
    (stdin, to_child), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
    pid = _start(argv, env, (stdin, stdout, stderr), folder, terminal=False)
    for fd in (stdin, stdout, stderr):
        os.close(fd)
    answer(connection, {"ok": True})
    Conversation(connection, pid, to_child, {out: b"O", err: b"R"}).carry()


def _start(
    argv: "list[str]", env: "dict[str, str]", ends: "tuple[int, int, int]", folder: str, *, terminal: bool
) -> int:
    pid = os.fork()
    if pid == 0:
        _become(argv, env, ends, folder, terminal=terminal)
    return pid


def _become(
    argv: "list[str]", env: "dict[str, str]", ends: "tuple[int, int, int]", folder: str, *, terminal: bool
) -> "NoReturn":
    try:
        os.setsid()
        if terminal:
            fcntl.ioctl(ends[0], termios.TIOCSCTTY, 0)
        for number, fd in enumerate(ends):
            os.dup2(fd, number)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)  # what we ignore, exec would hand on: no Ctrl-C, no hang-up
        try:
            os.chdir(folder)
        except OSError:
            os.chdir("/")
        os.execvpe(argv[0], argv, env)
    except OSError as exc:
        os.write(2, f"{argv[0]}: {exc.strerror}\n".encode())
    finally:
        os._exit(127)


def _resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows & 0xFFFF, columns & 0xFFFF, 0, 0))


class Conversation:
    """Frames of one program in both directions, until it has ended and all of its output is sent.

    A terminal ends with its shell: who still holds it hears the hang-up. Neither side waits for the other: Ctrl-C comes
    through while nobody reads the output.

    Args:
        to_child: where its input is written.
        outputs: where its output is read, and the kind of frame for each.
        terminal: our end of its terminal; -1 without one.
    """

    def __init__(
        self, connection: socket.socket, pid: int, to_child: int, outputs: "dict[int, bytes]", terminal: int = -1
    ) -> None:
        self.connection, self.pid, self.to_child, self.outputs = connection, pid, to_child, outputs
        self.terminal = terminal
        self.ended = os.pidfd_open(pid)
        self.code: int | None = None
        self.heard, self.waiting, self.telling = bytearray(), bytearray(), bytearray()
        self.no_more_input = False
        for fd in {to_child, *outputs}:
            os.set_blocking(fd, False)
        connection.setblocking(False)

    def carry(self) -> None:
        """Carry frames; ends the process when the client has closed, which hangs up the terminal."""
        while self.code is None or self.outputs:
            last_look = self.terminal >= 0 and self.code is not None and not self._is_full()
            ready = self._ready(0 if last_look else None)
            if last_look and not any(fd in ready for fd in self.outputs):
                break
            self._asker(ready.get(self.connection.fileno(), 0))
            self._input(ready.get(self.to_child, 0))
            self._output(ready)
            if self.ended in ready:
                self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert self.code is not None
        how = {"code": self.code} if self.code >= 0 else {"signal": _name(-self.code)}
        self.connection.setblocking(True)
        self.connection.sendall(bytes(self.telling) + _frame(b"X", json.dumps(how).encode()))

    def _is_full(self) -> bool:
        """Whether so much is untold that the program has to wait."""
        return len(self.telling) >= MAX_WAITING_BYTES

    def _ready(self, timeout_ms: "int | None") -> "dict[int, int]":
        """Return the events; waits for them, at most `timeout_ms`."""
        poll = select.poll()
        wanted = {} if self._is_full() else dict.fromkeys(self.outputs, select.POLLIN)
        if self.code is None:
            wanted[self.ended] = select.POLLIN
        asker = select.POLLIN if len(self.waiting) < MAX_WAITING_BYTES else 0  # a hang-up is told anyway
        wanted[self.connection.fileno()] = asker | (select.POLLOUT if self.telling else 0)
        if self.waiting and self.to_child >= 0:
            wanted[self.to_child] = wanted.get(self.to_child, 0) | select.POLLOUT
        for fd, events in wanted.items():
            poll.register(fd, events)
        return dict(poll.poll(timeout_ms))

    def _asker(self, events: int) -> None:
        try:
            if events & select.POLLOUT:
                del self.telling[: self.connection.send(self.telling)]
            if not events & (select.POLLIN | select.POLLHUP | select.POLLERR):
                return
            data = b"" if not events & select.POLLIN else self.connection.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            os._exit(0)
        self.heard += data
        for kind, payload in self._frames():
            self._obey(kind, payload)

    def _frames(self) -> "Iterator[tuple[bytes, bytes]]":
        while len(self.heard) >= FRAME.size:
            kind, length = FRAME.unpack_from(self.heard)
            if length > MAX_FRAME_BYTES:
                os._exit(0)
            if len(self.heard) < FRAME.size + length:
                return
            payload = bytes(self.heard[FRAME.size : FRAME.size + length])
            del self.heard[: FRAME.size + length]
            yield kind, payload

    def _obey(self, kind: bytes, payload: bytes) -> None:
        try:
            if kind == b"I":
                self.waiting += payload
            elif kind == b"E":
                self.no_more_input = True
            elif kind == b"W" and self.terminal >= 0:
                rows, columns = map(int, payload.split())
                _resize(self.terminal, rows, columns)
            elif kind == b"K":
                self._signal(signal.Signals[f"SIG{payload.decode()}"])
        except (ValueError, KeyError, OSError):
            return  # a window without a size, a signal of another system

    def _signal(self, number: signal.Signals) -> None:
        group = os.tcgetpgrp(self.terminal) if self.terminal >= 0 else self.pid
        if group > 0 and self.code is None:  # 0 would be this act's own group; who is over has handed its number on
            os.killpg(group, number)

    def _input(self, events: int) -> None:
        """Write what waits for the program; a terminal has no end of input but the one that is typed."""
        if self.to_child < 0:
            self.waiting.clear()
            return
        if self.waiting and events & (select.POLLOUT | select.POLLERR):
            try:
                del self.waiting[: os.write(self.to_child, self.waiting[:CHUNK])]
            except BlockingIOError:
                pass
            except OSError:  # it reads no more
                self.waiting.clear()
                self.no_more_input = True
        if self.no_more_input and not self.waiting and self.terminal < 0:
            os.close(self.to_child)
            self.to_child = -1

    def _output(self, ready: "dict[int, int]") -> None:
        for fd in [fd for fd in self.outputs if ready.get(fd, 0) & (select.POLLIN | select.POLLHUP | select.POLLERR)]:
            try:
                data = os.read(fd, CHUNK)
            except BlockingIOError:
                continue
            except OSError:  # EIO: nobody holds the terminal any more
                data = b""
            if data:
                self.telling += _frame(self.outputs[fd], data)
            else:
                del self.outputs[fd]


def _frame(kind: bytes, payload: bytes) -> bytes:
    return FRAME.pack(kind, len(payload)) + payload


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name[3:]
    except ValueError:
        return str(number)
