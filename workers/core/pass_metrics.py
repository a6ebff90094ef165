"""Metrics of scheduler passes for monitoring, kept in the cache."""

from __future__ import annotations

import time

from django.core.cache import cache

from aiplatform.lib import nudging

CACHE_KEY = "aip:scheduler:pass"
RETENTION_S = 300
EVERY_S = 5.0
_told = {"at": float("-inf")}


def record(seconds: float, waiting: int) -> None:
    """Say how long a pass took, and how many jobs waited in it; at most every five seconds."""
    if time.monotonic() - _told["at"] < EVERY_S:
        return
    _told["at"] = time.monotonic()
    figures = {"seconds": seconds, "waiting": waiting}
    nudging.attempt(lambda: cache.set(CACHE_KEY, figures, RETENTION_S), "pass time")
