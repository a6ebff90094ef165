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
LONGEST_S = 5.0
FAILURES = (OSError, http.client.HTTPException, ValueError)


@contextmanager
def connected(place: Sequence[Any], *, longest_s: float = LONGEST_S) -> Iterator[http.client.HTTPConnection]:
    """A connection to a server; all that is done with it ends after so many seconds, however slowly bytes come.

    Args:
        place: host and port; what follows is not looked at.

    Raises:
        One of FAILURES: whatever is done with it.
    """
    connection = http.client.HTTPConnection(place[0], place[1], timeout=PROBE_S)
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


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, headers: dict[str, str], *, most: int
) -> tuple[int, bytes]:
    """Status and body of an answer of at most so many bytes.

    Raises:
        One of FAILURES; ValueError: the answer has more, or broke off.
    """
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read(most + 1)
    if len(body) > most or answer.length:  # the rest is more than may be, or never came
        raise ValueError(f"no whole answer of at most {most} bytes")
    return answer.status, body
