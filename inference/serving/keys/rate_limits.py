"""Rate limits of callers over all web processes.

A sliding window of two counters: those of the last whole minute count by the part of it that lies within the last 60
seconds, as if they had come evenly. A refused request is not counted, so who waits gets through.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from django.core.cache import cache
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.locmem import LocMemCache

log = logging.getLogger(__name__)
MINUTE_S = 60
REFRESH_S = 5.0
_rest = {"until": float("-inf")}
_own = LocMemCache("paces", {"OPTIONS": {"MAX_ENTRIES": 10_000}})  # while the common store is away


def wait_s(caller: str, per_minute: int, *, clock: Callable[[], float] = time.time) -> int:
    """Count a request, or say in how many whole seconds there is room for one; 0: it was counted, let it through.

    Without the common store each process counts for itself: callers are not shut out because a cache is away.
    """
    if time.monotonic() >= _rest["until"]:
        try:
            return _wait_s(cache, caller, per_minute, clock())
        except Exception as exc:  # noqa: BLE001  clients of stores raise errors of their own
            _rest["until"] = time.monotonic() + REFRESH_S  # a store that hangs holds up one call, not each
            log.warning("paces are counted in this process alone for %s s: %s", REFRESH_S, exc)
    return _wait_s(_own, caller, per_minute, clock())


def _wait_s(store: BaseCache, caller: str, per_minute: int, moment: float) -> int:
    minute, passed = divmod(moment, MINUTE_S)
    passed /= MINUTE_S
    now, before = (f"pace:{caller}:{number}" for number in (int(minute), int(minute) - 1))
    store.add(now, 0, timeout=3 * MINUTE_S)
    count, old = store.incr(now), store.get(before, 0)
    if count + old * (1 - passed) <= per_minute:
        return 0
    store.decr(now)
    return _until_room(count, old, per_minute, passed)


def _until_room(count: int, old: int, per_minute: int, passed: float) -> int:
    """Seconds until `count`, and what is left of `old`, are no more than may be."""
    if count <= per_minute:  # in this minute, once enough of the old ones have gone
        return max(1, math.ceil((1 - (per_minute - count) / old - passed) * MINUTE_S))
    rest = 1 - (per_minute - 1) / (count - 1) if count > 1 else 0.0  # in the next, where these are the old ones
    return max(1, math.ceil((1 - passed + rest) * MINUTE_S))
