"""Connections to Redis that are ours; Django, Celery and Channels keep their own."""

from __future__ import annotations

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


def connect(url: str, *, timeout_s: float, connect_timeout_s: float | None = None) -> redis.Redis:
    """Return a client of the server at `url`; nothing is sent before its first command.

    Args:
        timeout_s: seconds an answer may take, then the command raises redis.TimeoutError.
        connect_timeout_s: seconds a connection may take; None: as long as an answer.

    A command is sent a second time, at once, where the connection broke: the server was started again. It is not sent
    again where the server hangs, so a command takes no longer than was said.
    """
    again = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
    connect_s = timeout_s if connect_timeout_s is None else connect_timeout_s
    return redis.Redis.from_url(url, socket_timeout=timeout_s, socket_connect_timeout=connect_s, retry=again)
