"""Dispatcher of the exec server: each connection is one request (see `requests`), served by a fork of the server."""

import json
import os
import select
import signal
import socket

from workers.supervisor.inside.requests import MAX_REQUEST_BYTES, Job, answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from workers.supervisor.inside.requests import Request

MAX_CONNECTIONS = 128  # served at a time; further connections wait
REQUEST_TIMEOUT_S = 30.0
PROXY_PORT = 3128  # HTTP proxy in the environment of jobs on a network of their own


def serve(listen_fd: int, command: int, job: Job, egress: str, command_signals: "Sequence[int]") -> None:
    """Serve requests until the command ends.

    Args:
        egress: path of the socket for the job's outgoing connections; "" if there is none.
        command_signals: signals for the command, which this process ignores.
    """
    listener = socket.socket(fileno=listen_fd)
    try:
        over = os.pidfd_open(command)
    except ProcessLookupError:
        return
    for number in command_signals:
        signal.signal(number, signal.SIG_IGN)
    woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    proxy = _proxy() if egress else None
    connections: set[int] = set()
    outward: set[int] = set()
    while True:
        sources: list[Any] = [over, woken]
        sources += [listener] if len(connections) < MAX_CONNECTIONS else []
        sources += [proxy] if proxy and len(outward) < MAX_CONNECTIONS else []
        ready = select.select(sources, [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            for running in (connections, outward):
                running -= {pid for pid in running if os.waitpid(pid, os.WNOHANG)[0]}
        if over in ready:
            break
        if listener in ready:
            connections |= _forked(listener, lambda connection: _respond(connection, job), command_signals)
        if proxy in ready:
            assert proxy
            outward |= _forked(proxy, lambda connection: _carry_outward(connection, egress), command_signals)
    for pid in connections | outward:
        os.kill(pid, signal.SIGTERM)  # its terminal hangs up, its pipes break


def _proxy() -> "socket.socket | None":
    try:
        return socket.create_server(("127.0.0.1", PROXY_PORT))
    except OSError:  # the command listens on this port itself
        return None


def _forked(
    listener: socket.socket, handle: "Callable[[socket.socket], None]", command_signals: "Sequence[int]"
) -> set[int]:
    """Accept the next connection and handle it in a fork. Return its pid; empty if no process can be started."""
    try:
        connection, _ = listener.accept()
    except OSError:  # the client disconnected, or too many files are open
        return set()
    with connection:
        try:
            pid = os.fork()
        except OSError as exc:  # the job has reached its process limit
            _refuse(connection, exc.strerror or "no room for one more process")
            return set()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                for number in (*command_signals, signal.SIGCHLD):
                    signal.signal(number, signal.SIG_DFL)
                handle(connection)
            finally:
                os._exit(0)
    return {pid}


def _carry_outward(connection: socket.socket, egress: str) -> None:
    from workers.supervisor.inside import relay  # noqa: PLC0415 - loaded by the first request

    with socket.socket(socket.AF_UNIX) as outside:
        outside.connect(egress)
        relay.both_ways(connection, outside)


def _respond(connection: socket.socket, job: Job) -> None:
    """Read one request and serve it."""
    try:
        request = _read_request(connection)
        _handler(request.get("act"))(connection, request, job)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else str(exc)
        _refuse(connection, why or type(exc).__name__)


def _refuse(connection: socket.socket, why: str) -> None:
    try:
        answer(connection, {"error": why})
    except OSError:
        return


def _handler(name: object) -> "Callable[[socket.socket, Request, Job], None]":
    from workers.supervisor.inside import listening, relay, sessions  # noqa: PLC0415 - loaded by the first request

    handlers = {
        "port": relay.port,
        "unix": relay.unix,
        "session": sessions.session,
        "sftp": sessions.sftp,
        "listen": listening.listen,
        "accept": listening.accept,
    }
    if name not in handlers:
        raise ValueError(f"there is no act {name!r}")
    return handlers[str(name)]


def _read_request(connection: socket.socket) -> "Request":
    connection.settimeout(REQUEST_TIMEOUT_S)
    line = b""
    while not line.endswith(b"\n"):
        data = connection.recv(MAX_REQUEST_BYTES, socket.MSG_PEEK)
        data = connection.recv(data.find(b"\n") + 1 or len(data))
        line += data
        if not data or len(line) > MAX_REQUEST_BYTES:
            raise ValueError("no request came")
    connection.settimeout(None)
    request = json.loads(line)
    if not isinstance(request, dict):
        raise ValueError("a request is an object")
    return request
