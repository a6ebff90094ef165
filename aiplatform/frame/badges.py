"""Badges of the side bar: how much waits for the reader behind an entry.

    badges.register(Badge("alerts", Action.CLUSTER_MANAGE, count_alerts, text=…))

Counts are read with one query per badge, at most every `LIFETIME_S` for each user and process.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from accounts.access.permissions import Action
from aiplatform.lib.registry import Registry

LIFETIME_S = 10.0
MAX_USERS = 1000  # whose counts a process remembers


@dataclass(frozen=True)
class Badge:
    """A count behind an entry of the side bar.

    Attributes:
        entry: key of the entry.
        text: what the count says to screen readers.
    """

    entry: str
    needs: Action
    count: Callable[[Any], int]
    text: Callable[[int], Any]


BADGES: Registry[Badge] = Registry("badge", name=lambda badge: badge.entry)
register = BADGES.register  # called from AppConfig.ready()

_counts: OrderedDict[int, tuple[float, dict[str, int]]] = OrderedDict()
_lock = Lock()


def counts_for(user: Any) -> Mapping[str, int]:
    """Return the counts that are not zero, by the key of their entry."""
    now = time.monotonic()
    with _lock:
        if (stored := _counts.get(user.pk)) and now - stored[0] < LIFETIME_S:
            return stored[1]
    counts = {badge.entry: badge.count(user) for badge in BADGES if user.can(badge.needs)}
    counts = {entry: count for entry, count in counts.items() if count}
    with _lock:
        _counts[user.pk] = now, counts
        _counts.move_to_end(user.pk)
        while len(_counts) > MAX_USERS:
            _counts.popitem(last=False)
    return counts


def badge_text(entry: str, count: int) -> str:
    """Return what the badge of an entry says to screen readers; "" without a badge."""
    badge = BADGES.find(entry)
    return str(badge.text(count)) if badge and count else ""


def forget() -> None:
    """Count again at the next page."""
    with _lock:
        _counts.clear()
