"""The port by which machines of one platform reach each other's jobs: whether it is reached. Standard library only.

A firewall in between shows only when a user opens a job's page, so `join` and `doctor` check beforehand.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

GREETING = b'{"challenge"'  # how a relay begins, see workers.execution.exec.greeting
TIMEOUT_S = 3.0


def answers(address: str, port: int, patience_s: float = TIMEOUT_S) -> bool:
    """Return whether a relay, or a stand-in for one, greets connections to this address."""
    try:
        with socket.create_connection((address, port), patience_s) as connection, connection.makefile("rb") as reader:
            return reader.readline(4096).startswith(GREETING)
    except OSError:
        return False


@contextlib.contextmanager
def stand_in(address: str, port: int) -> Iterator[None]:
    """Greet in place of the relay that is not started yet; if another process listens already, do nothing."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, port))
            listener.listen()
        except OSError:
            yield
            return
        greeter = threading.Thread(target=_greet, args=(listener,), daemon=True)
        greeter.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            greeter.join()


def _greet(door: socket.socket) -> None:
    with contextlib.suppress(OSError):  # shut down
        while True:
            caller, _address = door.accept()
            with caller, contextlib.suppress(OSError):
                caller.sendall(GREETING + b': ""}\n')
