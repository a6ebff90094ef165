"""Short exchanges of the platform with the servers of services: bounded in time and bytes as a whole."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

PROBE_S = 0.7
MAX_DURATION_S = 5.0
FAILURES = (OSError, http.client.HTTPException, ValueError)


@contextmanager
def connected(address: Sequence[Any], *, longest_s: float = MAX_DURATION_S) -> Iterator[http.client.HTTPConnection]:
    """Yield a connection to a server; everything done with it ends after `longest_s`, however slowly bytes arrive.

    Args:
        address: host and port; further items are ignored.

    Raises:
        One of FAILURES: whatever is done with it.
    """
    connection = http.client.HTTPConnection(address[0], address[1], timeout=PROBE_S)
    cut = threading.Timer(longest_s, _cut, [connection])
    cut.daemon = True
    cut.start()
    try:
        yield connection
    finally:
        cut.cancel()
        connection.close()


def _cut(connection: http.client.HTTPConnection) -> None:
    with contextlib.suppress(OSError, AttributeError):  # it was closed meanwhile
        connection.sock.shutdown(socket.SHUT_RDWR)


def send(
    connection: http.client.HTTPConnection, method: str, path: str, headers: dict[str, str], *, max_bytes: int
) -> tuple[int, bytes]:
    """Return status and body of a response of at most `max_bytes`.

    Raises:
        One of FAILURES; ValueError: the answer has more, or broke off.
    """
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read(max_bytes + 1)
    if len(body) > max_bytes or answer.length:  # the rest is more than may be, or never came
        raise ValueError(f"no whole answer of at most {max_bytes} bytes")
    return answer.status, body
