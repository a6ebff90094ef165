"""Open a port for a person: who may, what has to be started first, then the ticket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from accounts.models import ApiToken, User
from aiplatform.lib.registry import Registry
from workers.proxy import admissions
from workers.proxy.admissions import Opened
from workers.proxy.models import PublishedPort


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
