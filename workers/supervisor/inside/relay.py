"""Carrying bytes between whoever asks and a port or socket inside the sandbox."""

import _thread
import socket

from workers.supervisor.inside import own_ports
from workers.supervisor.inside.requests import answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workers.supervisor.inside.requests import Job, Request

CHUNK = 262144
CONNECT_S = 5.0


def port(connection: socket.socket, request: "Request", job: "Job") -> None:
    """Connect to a port of the loopback. On a network that is not the job's own, only to one that the job opened."""
    number = int(request["port"])
    if job.top and not own_ports.is_own(number, job.top):
        raise ValueError(f"nothing of this job listens on port {number}")
    target = _loopback(number)
    target.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    answer(connection, {"ok": True})
    both_ways(connection, target)


def _loopback(number: int) -> socket.socket:
    try:
        target = socket.create_connection(("127.0.0.1", number), timeout=CONNECT_S)
    except OSError as exc:
        try:
            target = socket.create_connection(("::1", number), timeout=CONNECT_S)
        except OSError:
            raise exc from None
    target.settimeout(None)
    return target


def unix(connection: socket.socket, request: "Request", job: "Job") -> None:
    """Connect to a unix socket, as the job sees its path."""
    target = socket.socket(socket.AF_UNIX)
    target.connect(str(request["path"]))
    answer(connection, {"ok": True})
    both_ways(connection, target)


def both_ways(left: socket.socket, right: socket.socket) -> None:
    """Copy bytes until both sides are at their end; either may end its output and still read."""
    done = _thread.allocate_lock()
    done.acquire()

    def back() -> None:
        _copy(right, left)
        done.release()

    _thread.start_new_thread(back, ())
    _copy(left, right)
    done.acquire()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # one side is gone: the other direction has nobody to talk to
        for side in (source, target):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
