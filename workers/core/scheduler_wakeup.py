"""Wakes the scheduler early, by a list in the broker; without it the scheduler looks every few seconds."""

from __future__ import annotations

import logging
import time
from functools import cache

import redis
from django.conf import settings

from aiplatform.lib import after_commit, nudging, redis_client

log = logging.getLogger(__name__)

KEY = "aip:scheduler:bell"
_SHORT_S = 0.5
_TIMEOUT_S = 2.0


@cache
def _client(timeout_s: float) -> redis.Redis | None:
    url = settings.REDIS_URL
    if settings.CELERY_BROKER_URL.startswith("memory:"):
        return None
    return redis_client.connect(url, timeout_s=timeout_s, connect_timeout_s=_SHORT_S)


def notify() -> None:
    """Wake the scheduler once the transaction commits. A dead broker costs at most a second."""
    after_commit.send(KEY, None, lambda _once: wake())


def wake() -> None:
    """Wake the scheduler now."""
    client = _client(_SHORT_S)
    if client is None:
        return

    def push() -> None:
        with client.pipeline(transaction=False) as pipe:
            pipe.lpush(KEY, 1)
            pipe.ltrim(KEY, 0, 0)
            pipe.execute()

    nudging.attempt(push, "bell")


def wait(seconds: float, *, without_broker_s: float = 1.0) -> None:
    """Sleep until `notify` is called, at most `seconds`; at most `without_broker_s` while the broker is away."""
    client = _client(max(_TIMEOUT_S, seconds + 1.0))
    started_at = time.monotonic()
    if client is not None:
        try:
            client.blpop([KEY], timeout=seconds)
        except redis.RedisError as exc:
            log.info("no bell for now: %s", exc)
        else:
            return
    time.sleep(max(0.0, min(seconds, without_broker_s) - (time.monotonic() - started_at)))
