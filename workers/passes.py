"""What the scheduler tells of its passes, for those who watch it. Kept in the cache: nice to have, never waited for."""

from __future__ import annotations

from django.core.cache import cache

from aiplatform.lib import nudging

CACHE_KEY = "aip:scheduler:pass"
KEPT_S = 300


def tell(seconds: float, waiting: int) -> None:
    """Say how long a pass took, and how many jobs waited in it."""
    figures = {"seconds": seconds, "waiting": waiting}
    nudging.attempt(lambda: cache.set(CACHE_KEY, figures, KEPT_S), "pass time")
