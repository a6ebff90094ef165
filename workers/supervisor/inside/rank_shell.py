"""Shell on another machine of the same job: `aip-rsh HOST [COMMAND…]`, as rsh and ssh are called.

HOST is an address of the host file, a machine's name, or a rank: 0, 1, … It runs inside the job and asks the socket
that the platform keeps for this rank; who may be reached is judged there. Ends with the command's own exit code, 128
and the signal's number where one ended it, and 255 where nobody was reached. Standard library only.
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
import time
import tty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FRAME = struct.Struct(">cI")  # as `sessions` writes them
CHUNK = 65536
FAILED = 255
TIMEOUT_S = 30.0  # for the socket to be there: the platform's process behind it may be starting
LOOK_S = 0.2
_ALONE = ("-x", "-X", "-n", "-q", "-T", "-a", "-A", "-4", "-6", "-K")  # of ssh and rsh, without a meaning here
_WITH_VALUE = ("-l", "-p", "-o", "-i", "-F")
USAGE = "usage: aip-rsh [-t] HOST [COMMAND…]     HOST: an address, a machine's name, or a rank of this job\n"


def main() -> int:
    """Run the program by its arguments; return its exit code."""
    path, *arguments = sys.argv[1:]
    terminal, arguments = _options(arguments)
    if not arguments:
        sys.stderr.write(USAGE)
        return FAILED
    command = " ".join(arguments[1:]) or None
    on_terminal = (terminal or command is None) and sys.stdin.isatty()
    request = {"to": arguments[0], "command": command, "pty": _window() if on_terminal else None}
    try:
        with _connected(path) as connection:
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer = _answer(connection)
            if not answer.get("ok"):
                raise OSError(str(answer.get("error") or "it was refused"))
            return Session(connection, on_terminal).carry()
    except (OSError, ValueError) as exc:
        sys.stderr.write(f"aip-rsh: {arguments[0]}: {exc}\n")
        return FAILED


def _options(arguments: "list[str]") -> "tuple[bool, list[str]]":
    """Whether a terminal is requested, and the arguments after the options."""
    terminal = False
    while arguments and arguments[0].startswith("-") and len(arguments[0]) > 1:
        if arguments[0] in ("-t", "-tt"):
            terminal = True
        elif arguments[0] in _WITH_VALUE:
            arguments = arguments[1:]
        elif arguments[0] not in _ALONE:
            return terminal, []
        arguments = arguments[1:]
    return terminal, arguments


def _connected(path: str) -> socket.socket:
    """A connection to the platform's socket; waits for one that is not there yet.

    Raises:
        OSError: it does not come.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError) as exc:
            connection.close()
            if time.monotonic() > deadline:
                raise OSError("no way to the other machines; is the platform's exec_relay running here?") from exc
            time.sleep(LOOK_S)
        else:
            return connection


def _answer(connection: socket.socket) -> "dict[str, object]":
    """The line that answers, and not a byte of what follows."""
    line = b""
    while not line.endswith(b"\n"):
        data = connection.recv(CHUNK, socket.MSG_PEEK)
        data = connection.recv(data.find(b"\n") + 1 or len(data))
        line += data
        if not data:
            raise OSError("the connection was closed")
    answer = json.loads(line)
    return answer if isinstance(answer, dict) else {}


def _window() -> "dict[str, object]":
    rows, columns, _x, _y = struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))
    return {"term": os.environ.get("TERM", "xterm-256color"), "rows": rows, "columns": columns}


class Session:
    """What is typed goes there, what it says comes here, until it has ended."""

    def __init__(self, connection: socket.socket, on_terminal: bool) -> None:
        self.connection, self.on_terminal = connection, on_terminal
        self.heard, self.code = bytearray(), FAILED
        self.resized = False

    def carry(self) -> int:
        """Carry bytes to the end; returns what the command ended with."""
        before = termios.tcgetattr(0) if self.on_terminal else None
        woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGWINCH, lambda *_: None)
        if before:
            tty.setraw(0)
        try:
            self._carry(woken)
        finally:
            if before:
                termios.tcsetattr(0, termios.TCSADRAIN, before)
        return self.code

    def _carry(self, woken: int) -> None:
        typed, here = [0], self.connection.fileno()
        while True:
            ready = select.select([here, woken, *typed], [], [])[0]
            if woken in ready:
                os.read(woken, CHUNK)
                if self.on_terminal:
                    window = _window()
                    self._send_frame(b"W", f"{window['rows']} {window['columns']}".encode())
            if 0 in ready:
                typed = self._typed()
            if here in ready:
                data = self.connection.recv(CHUNK)
                if not data:
                    raise OSError("the connection was closed")
                self.heard += data
                if self._process_frames():
                    return

    def _typed(self) -> list[int]:
        """Pass on what is there to read; returns what to read further."""
        try:
            data = os.read(0, CHUNK)
        except OSError:  # no input, or no terminal any more
            data = b""
        self._send_frame(b"I" if data else b"E", data)
        return [0] if data else []

    def _process_frames(self) -> bool:
        """Process received frames; return whether that was the end."""
        for kind, payload in self._frames():
            if kind == b"X":
                outcome = json.loads(payload)
                self.code = 128 + _number(outcome["signal"]) if "signal" in outcome else int(outcome["code"])
                return True
            _write(2 if kind == b"R" else 1, payload)
        return False

    def _frames(self) -> "Iterator[tuple[bytes, bytes]]":
        while len(self.heard) >= FRAME.size:
            kind, length = FRAME.unpack_from(self.heard)
            if len(self.heard) < FRAME.size + length:
                return
            payload = bytes(self.heard[FRAME.size : FRAME.size + length])
            del self.heard[: FRAME.size + length]
            yield kind, payload

    def _send_frame(self, kind: bytes, payload: bytes = b"") -> None:
        self.connection.sendall(FRAME.pack(kind, len(payload)) + payload)


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _number(name: object) -> int:
    try:
        return signal.Signals[f"SIG{name}"].value
    except KeyError:
        return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
