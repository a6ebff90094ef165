"""Durations in words, and moments that every time zone can show."""

from datetime import UTC, datetime, timedelta

_EARLIEST, _LATEST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)


def moment(seconds: float) -> datetime:
    """A moment that a program or a file names, in seconds since 1970; beyond what a calendar holds, its first or last.

    Raises:
        ValueError: it is no number.
    """
    return datetime.fromtimestamp(min(max(seconds, _EARLIEST.timestamp()), _LATEST.timestamp()), UTC)


def words(span: timedelta | float) -> str:
    """ "2 d 3 h", "4 min 10 s", "0.4 s": the two largest units that matter.

    Args:
        span: a timedelta, or seconds.
    """
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if seconds < 0:
        return "0 s"
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    parts: list[str] = []
    rest = round(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"
