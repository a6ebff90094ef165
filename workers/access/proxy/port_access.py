"""Open a port for a person: who may, what has to be started first, then the ticket."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings

from accounts.models import ApiToken, User
from aiplatform import env
from aiplatform.lib.registry import Registry
from workers.access.proxy import admissions
from workers.access.proxy.admissions import Opened
from workers.access.proxy.models import PublishedPort

AGAIN_S = 0.2
HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where one reaches who listens everywhere


@dataclass(frozen=True)
class Starter:
    """What makes a program listen that a kind of job starts only for who opens it.

    `start` raises a DomainError where it cannot.
    """

    kind: str
    port: str
    start: Callable[[PublishedPort], None]


STARTERS: Registry[Starter] = Registry("starter of ports", name=lambda starter: f"{starter.kind}/{starter.port}")


def open_port(
    row: PublishedPort, *, user: User, host: str, secure: bool, session_key: str = "", token: ApiToken | None = None
) -> Opened:
    """Make a ticket for a port whose program listens by then as far as the platform starts it; see `admissions.issue`.

    Raises:
        DomainError: the port is not theirs, cannot be opened now, or its program does not start.
    """
    admissions.check(row, user)
    name = f"{row.job.kind}/{row.name}"
    if row.by_platform and name in STARTERS:
        STARTERS.get(name).start(row)
    return admissions.issue(row, user=user, host=host, secure=secure, session_key=session_key, token=token)


def await_origin(patience_s: float | None = None) -> bool:
    """Whether the web server of the ports takes connections, which it does a moment after it was started again.

    A browser that is sent there too early shows a fault of its own, on which nothing of ours can say what to do.

    Args:
        patience_s: how long to wait for it; None: as the settings say; 0: nobody looks.
    """
    until = time.monotonic() + (settings.PORTS_PATIENCE_S if patience_s is None else patience_s)
    while time.monotonic() < until:
        try:
            socket.create_connection((HERE.get(env.HOST, env.HOST), settings.PORTS_PORT), timeout=1).close()
            return True
        except OSError:
            time.sleep(AGAIN_S)
    return False
