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


def format_duration(span: timedelta | float, max_units: int = 2) -> str:
    """Return "2 d 3 h", "4 min 10 s", "0.4 s": the largest units that matter, in the reader's language.

    Args:
        span: a timedelta, or seconds.
        max_units: units that are named.
    """
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    return _format(round(max(seconds, 0.0), 1) if seconds < 10 else round(seconds), max_units, get_language())


@lru_cache(maxsize=4096)
def _format(seconds: float, max_units: int, _language: str | None) -> str:
    """Format rounded seconds; tables show the same durations repeatedly."""
    if seconds < 10:
        return _("%(n)s s") % {"n": f"{seconds:.1f}".removesuffix(".0")}
    parts: list[str] = []
    remainder = int(seconds)
    for unit, size in _UNITS:
        count, remainder = divmod(remainder, size)
        if count:
            parts.append(_(unit) % {"n": count})
    return " ".join(parts[:max_units])
