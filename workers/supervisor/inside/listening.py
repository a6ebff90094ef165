"""Listening on the job's loopback for whoever asks: what arrives there is carried outward.

The act `listen` answers with the "port" and a "key", then says {"id": …, "peer": […]} for each connection. Whoever
asked opens a channel with {"act": "accept", "key": …, "id": …} for each: the bytes of that connection. Listening ends
with the channel that asked for it; connections that were accepted go on.
"""

import errno
import hmac
import os
import select
import socket
import struct

from workers.supervisor.inside import relay
from workers.supervisor.inside.requests import MAX_REQUEST_BYTES, answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workers.supervisor.inside.requests import Job, Request

MAX_WAITING = 32  # connections that nobody has taken up yet
_CREDENTIALS = struct.Struct("3i")


def listen(connection: socket.socket, request: "Request", job: "Job") -> None:
    """Listen on a port of the loopback, 0 for any that is free, until the client has closed."""
    server = socket.create_server(("127.0.0.1", int(request.get("port") or 0)))
    pick_up = socket.socket(socket.AF_UNIX)
    name, secret = os.urandom(16).hex(), os.urandom(16).hex()  # names stand in /proc/net/unix for all to read
    pick_up.bind(_address(name))
    pick_up.listen(MAX_WAITING)
    answer(connection, {"ok": True, "port": server.getsockname()[1], "key": f"{name}.{secret}"})
    waiting: dict[int, socket.socket] = {}
    number = 0
    while True:
        ready = select.select([connection, pick_up, server], [], [])[0]
        if connection in ready and not connection.recv(MAX_REQUEST_BYTES):
            return
        if pick_up in ready:
            _hand_over(pick_up, secret, waiting)
        if server in ready:
            arrived, peer = server.accept()
            number += 1
            if len(waiting) >= MAX_WAITING:  # whoever should have taken up the oldest does so no more
                waiting.pop(min(waiting)).close()
            waiting[number] = arrived
            answer(connection, {"id": number, "peer": list(peer[:2])})


def _address(name: str) -> str:
    return f"\0aip-listen-{name}"  # no file: it goes with its process


def _hand_over(pick_up: socket.socket, secret: str, waiting: "dict[int, socket.socket]") -> None:
    """Give one connection to the action that asks for it; only to this job's own user, who knows the secret."""
    asker, _ = pick_up.accept()
    with asker:
        asker.settimeout(1.0)
        try:
            _pid, uid, _gid = _CREDENTIALS.unpack(
                asker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            )
            key, _space, wanted = asker.recv(64).partition(b" ")
            number = int(wanted or b"0")
            if uid == os.geteuid() and hmac.compare_digest(key, secret.encode()) and number in waiting:
                with waiting.pop(number) as taken:
                    socket.send_fds(asker, [b"."], [taken.fileno()])
        except (OSError, ValueError):
            return


def accept(connection: socket.socket, request: "Request", job: "Job") -> None:
    """Carry the bytes of a connection that arrived."""
    with socket.socket(socket.AF_UNIX) as asking:
        name, _dot, secret = str(request["key"]).partition(".")
        asking.connect(_address(name))
        asking.sendall(b"%s %d" % (secret.encode(), int(request["id"])))
        _data, taken, _flags, _address_of = socket.recv_fds(asking, 1, 1)
    if not taken:
        raise OSError(errno.ENOENT, "no such connection waits")
    arrived = socket.socket(fileno=taken[0])
    arrived.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    answer(connection, {"ok": True})
    relay.both_ways(connection, arrived)
