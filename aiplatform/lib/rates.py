"""Rate limits, for acts that cost others something, such as mail to anybody's address."""

from __future__ import annotations

import logging

from django.core.cache import cache
from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError

log = logging.getLogger(__name__)


class TooOften(DomainError, code="too_often", status=429):
    """The limit is reached for this person or address."""


def count(name: str, *, within_s: int) -> int:
    """Count an act for `name` in its window and return the count; 0 where the cache does not answer."""
    key = f"rate:{name}"
    try:
        cache.add(key, 0, within_s)
        return int(cache.incr(key))
    except Exception as exc:  # noqa: BLE001 - any error of the cache's library: a broken cache stops no work
        log.warning("rate=%s is not counted: %s", name, exc)
        return 0


def limit(name: str, *, max_count: int, within_s: int) -> None:
    """Count one use of `name`, in windows that start with the first; all web processes share the count.

    Raises:
        TooOften: it is more than `max_count` in this window.
    """
    if count(name, within_s=within_s) > max_count:
        raise TooOften(_("Too many requests. Wait a while and try again."))
