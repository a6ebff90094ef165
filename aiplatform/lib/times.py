"""Durations in words, and moments that every time zone can show."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from django.utils.translation import get_language, gettext_noop
from django.utils.translation import gettext as _

_EARLIEST, _LATEST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)

_UNITS = (
    (gettext_noop("%(n)s d"), 86400),
    (gettext_noop("%(n)s h"), 3600),
    (gettext_noop("%(n)s min"), 60),
    (gettext_noop("%(n)s s"), 1),
)


def moment(seconds: float) -> datetime:
    """A moment that a program or a file names, in seconds since 1970; beyond what a calendar holds, its first or last.

    Raises:
        ValueError: it is no number.
    """
    return datetime.fromtimestamp(min(max(seconds, _EARLIEST.timestamp()), _LATEST.timestamp()), UTC)


def words(span: timedelta | float, most: int = 2) -> str:
    """ "2 d 3 h", "4 min 10 s", "0.4 s": the largest units that matter, in the reader's language.

    Args:
        span: a timedelta, or seconds.
        most: units that are named.
    """
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    return _words(round(max(seconds, 0.0), 1) if seconds < 10 else round(seconds), most, get_language())


@lru_cache(maxsize=4096)
def _words(seconds: float, most: int, _language: str | None) -> str:
    """The same for rounded seconds: tables show the same spans again and again."""
    if seconds < 10:
        return _("%(n)s s") % {"n": f"{seconds:.1f}".removesuffix(".0")}
    parts: list[str] = []
    rest = int(seconds)
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(_(unit) % {"n": count})
    return " ".join(parts[:most])
