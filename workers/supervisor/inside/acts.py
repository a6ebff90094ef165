"""Acts of the exec server: one connection is one act, served by a fork of the server.

A request is one line of JSON, answered by one line of JSON: {"ok": true, …}, or {"error": "…"} and the end. Bytes or
frames follow, see `relay` and `sessions`.

| request | follows |
|---|---|
| {"act": "port", "port": 8888} | the bytes of a connection to that port of the job's loopback |
| {"act": "unix", "path": "/…"} | the bytes of a connection to that socket |
| {"act": "session", "command": text or null, "pty": {"term", "rows", "columns"} or null, "env": {}} | frames |
| {"act": "sftp", "env": {}} | frames |
| {"act": "listen", "port": 0} | a line of JSON for each connection that arrives, see `listening` |
| {"act": "accept", "key": …, "id": …} | the bytes of such a connection |

Whoever asks is outside the sandbox, and may sit on another machine: no descriptor ever travels.
"""

import json
import os
import select
import signal
import socket

from workers.supervisor.inside.exec_server import MEANT_FOR_THE_COMMAND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Request = dict[str, Any]

MOST = 128  # acts at a time; who comes later waits
LONGEST = 65536  # bytes of a request
REQUEST_S = 30.0  # for one to arrive
PROXY_PORT = 3128  # where programs of a job on a network of its own are told to find the way out


class Job:
    """What acts know of the job they serve.

    Args:
        top: the process below which all of the job's own hang; 0 where all that listens here is the job's.
        env: the environment that its command was given.
    """

    def __init__(self, top: int, env: "dict[str, str]") -> None:
        self.top, self.env = top, env


def serve(listen_fd: int, command: int, job: Job, egress: str) -> None:
    """Serve acts until the command is over.

    Args:
        egress: the socket that takes the job's own connections outward; "": there is none.
    """
    listener = socket.socket(fileno=listen_fd)
    try:
        over = os.pidfd_open(command)
    except ProcessLookupError:
        return
    for number in MEANT_FOR_THE_COMMAND:
        signal.signal(number, signal.SIG_IGN)
    woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    proxy = _proxy() if egress else None
    acts: set[int] = set()
    outward: set[int] = set()
    while True:
        sources: list[Any] = [over, woken]
        sources += [listener] if len(acts) < MOST else []
        sources += [proxy] if proxy and len(outward) < MOST else []
        ready = select.select(sources, [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            for running in (acts, outward):
                running -= {pid for pid in running if os.waitpid(pid, os.WNOHANG)[0]}
        if over in ready:
            break
        if listener in ready:
            acts |= _forked(listener, lambda connection: _act(connection, job))
        if proxy in ready:
            assert proxy
            outward |= _forked(proxy, lambda connection: _carry_outward(connection, egress))
    for pid in acts | outward:
        os.kill(pid, signal.SIGTERM)  # its terminal hangs up, its pipes break


def _proxy() -> "socket.socket | None":
    try:
        return socket.create_server(("127.0.0.1", PROXY_PORT))
    except OSError:  # the command was faster, and listens there itself
        return None


def _forked(listener: socket.socket, do: "Callable[[socket.socket], None]") -> set[int]:
    """Take the next connection, in a process of its own; returns its pid, or none where there is no room for one."""
    try:
        connection, _ = listener.accept()
    except OSError:  # who connected is gone again, or no more files may be open
        return set()
    with connection:
        try:
            pid = os.fork()
        except OSError as exc:  # the job uses all the processes it may have
            _refuse(connection, exc.strerror or "no room for one more process")
            return set()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                for number in (*MEANT_FOR_THE_COMMAND, signal.SIGCHLD):
                    signal.signal(number, signal.SIG_DFL)
                do(connection)
            finally:
                os._exit(0)
    return {pid}


def _carry_outward(connection: socket.socket, egress: str) -> None:
    from workers.supervisor.inside import relay  # noqa: PLC0415 - read by the first who asks

    with socket.socket(socket.AF_UNIX) as outside:
        outside.connect(egress)
        relay.both_ways(connection, outside)


def _act(connection: socket.socket, job: Job) -> None:
    """Do one act."""
    try:
        request = _request(connection)
        _of(request.get("act"))(connection, request, job)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else str(exc)
        _refuse(connection, why or type(exc).__name__)


def _refuse(connection: socket.socket, why: str) -> None:
    try:
        answer(connection, {"error": why})
    except OSError:
        return


def _of(name: object) -> "Callable[[socket.socket, Request, Job], None]":
    from workers.supervisor.inside import listening, relay, sessions  # noqa: PLC0415 - read by the first who asks

    known = {
        "port": relay.port,
        "unix": relay.unix,
        "session": sessions.session,
        "sftp": sessions.sftp,
        "listen": listening.listen,
        "accept": listening.accept,
    }
    if name not in known:
        raise ValueError(f"there is no act {name!r}")
    return known[str(name)]


def _request(connection: socket.socket) -> "Request":
    connection.settimeout(REQUEST_S)
    line = b""
    while not line.endswith(b"\n"):
        data = connection.recv(LONGEST, socket.MSG_PEEK)
        data = connection.recv(data.find(b"\n") + 1 or len(data))
        line += data
        if not data or len(line) > LONGEST:
            raise ValueError("no request came")
    connection.settimeout(None)
    request = json.loads(line)
    if not isinstance(request, dict):
        raise ValueError("a request is an object")
    return request


def answer(connection: socket.socket, message: "dict[str, Any]") -> None:
    """Send one line of JSON.

    Raises:
        OSError: nobody is there any more.
    """
    connection.sendall(json.dumps(message).encode() + b"\n")
