"""When a schedule is due, in a person's time zone. Pure: the caller knows the clock and what has been started.

A schedule is five cron fields: minute, hour, day of month, month, day of week. Where clocks are changed, a time that
does not exist that day is due at the first moment that does, and one that exists twice is due once, the first time. A
schedule for every hour (`*` in the hour) follows real time instead: it misses no hour and repeats none.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, Refusals

MAX_LENGTH = 200  # characters of a schedule
MAX_SHOWN = 50  # times that are shown in advance
MAX_DUE = 100  # times that one call gives
MISSED_AFTER = timedelta(minutes=5)  # what is due for longer has been missed
_BACK = timedelta(hours=3)  # clocks are never set back by more
_EVERY_HOUR = frozenset({"*", "*/1", "0-23"})
_SHORT = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}

Missed = Literal["latest", "all", "none"]


def check(expr: str, zone: str) -> None:
    """Refuse a schedule or a time zone that is not valid.

    Raises:
        Invalid: one for each of the two; `field` is "schedule" or "zone".
    """
    refusals = Refusals()
    with refusals:
        _fields(expr)
    with refusals:
        zone_named(zone)
    refusals.end()
    if not next_times(expr, zone, datetime(2024, 1, 1, tzinfo=UTC), 1):
        raise Invalid(_("No date matches “%(given)s”.") % {"given": expr}, field="schedule")


def next_times(expr: str, zone: str, after: datetime, count: int = 5) -> list[datetime]:
    """Return the next times after `after`, which is aware, in UTC; fewer than `count` where there are no more.

    Raises:
        Invalid: the schedule or the zone cannot be read.
    """
    return list(islice(_after(expr, zone_named(zone), after), min(count, MAX_SHOWN)))


def due(
    expr: str, zone: str, last: datetime, now: datetime, missed: Missed = "latest", *, limit: int = MAX_DUE
) -> list[datetime]:
    """Return the times after `last` up to `now` that are due, oldest first, in UTC.

    Args:
        last: the time that was looked at last: the newest one started for, or when the schedule was made.
        missed: what becomes of times that went by while nothing ran. "latest" gives only the newest that is due,
            "all" every one, "none" only one that is due for less than five minutes.
        limit: how many a call returns at most; with "all" the next call continues after them.

    Raises:
        Invalid: the schedule or the zone cannot be read.
    """
    tz = zone_named(zone)
    if missed == "all":
        times = islice(_after(expr, tz, last), max(0, min(limit, MAX_DUE)))
        return [moment for moment in times if moment <= now]
    newest = _latest(expr, tz, now)
    if newest is None or newest <= last or (missed == "none" and now - newest > MISSED_AFTER):
        return []
    return [newest]


def zone_named(name: str) -> ZoneInfo:
    """Return a time zone.

    Raises:
        Invalid: there is none with this name.
    """
    try:
        if not name or len(name) > 64:
            raise ValueError
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        message = _("Unknown time zone “%(name)s”. Use a name such as Europe/Berlin, Asia/Shanghai or UTC.")
        raise Invalid(message % {"name": str(name)[:64]}, field="zone") from exc


def _fields(expr: str) -> list[str]:
    """Return the five fields of a valid expression."""
    if not isinstance(expr, str) or len(expr) > MAX_LENGTH:
        raise Invalid(_("A schedule can have at most %(most)s characters.") % {"most": MAX_LENGTH}, field="schedule")
    fields = _SHORT.get(expr.strip().lower(), expr).split()
    if len(fields) == 6:
        message = _(
            "The shortest interval of a schedule is one minute: remove the seconds, so that five fields remain."
        )
        raise Invalid(message, field="schedule")
    if len(fields) != 5:
        message = _(
            "A schedule must have five fields: minute, hour, day of the month, month, day of the week, such as "
            "30 2 * * SUN. “%(given)s” has %(has)s."
        )
        raise Invalid(message % {"given": expr[:80], "has": len(fields)}, field="schedule")
    try:
        CronSim(" ".join(fields), datetime(2024, 1, 1))  # noqa: DTZ001  no zone: the hands of a clock
    except (CronSimError, AssertionError, ValueError) as exc:
        message = _(
            "“%(given)s” is not a valid schedule: %(what)s cannot be parsed. For Sundays at 02:30: 30 2 * * SUN."
        )
        what = _BAD.get(str(exc))
        raise Invalid(
            message % {"given": expr[:80], "what": what() if what else _("a field")}, field="schedule"
        ) from exc
    return fields


_BAD = {
    "Bad minute": lambda: _("the minute"),
    "Bad hour": lambda: _("the hour"),
    "Bad day-of-month": lambda: _("the day of the month"),
    "Bad month": lambda: _("the month"),
    "Bad day-of-week": lambda: _("the day of the week"),
}


def _after(expr: str, zone: tzinfo, moment: datetime) -> Iterator[datetime]:
    """Yield all times later than `moment`, each once, in order."""
    newest = moment.astimezone(UTC)
    for tick in _ticks(_fields(expr), zone, newest, reverse=False):
        if tick > newest:
            newest = tick
            yield tick


def _latest(expr: str, zone: tzinfo, moment: datetime) -> datetime | None:
    """Return the latest time up to `moment`."""
    moment = moment.astimezone(UTC)
    # the first hour that is set back has hands that are later than those of a moment after it
    for tick in _ticks(_fields(expr), zone, moment + _BACK, reverse=True):
        if tick <= moment:
            return tick
    return None


def _ticks(fields: list[str], zone: tzinfo, start: datetime, *, reverse: bool) -> Iterator[datetime]:
    """Times of a schedule from `start` on, or back from there, as moments in UTC; some may come twice."""
    if fields[1] in _EVERY_HOUR:  # the library then walks through real time, and shows each moment as clocks there do
        expr = " ".join([fields[0], "*", *fields[2:]])
        for moment in CronSim(expr, start.astimezone(zone), reverse=reverse):
            yield moment.astimezone(UTC)
        return
    hands = start.astimezone(zone).replace(tzinfo=None)
    for shown in CronSim(" ".join(fields), hands, reverse=reverse):
        yield first_moment(shown, zone)


def first_moment(hands: datetime, zone: tzinfo) -> datetime:
    """The first moment at which clocks of a zone show `hands`, or, where they never do, the first one after the gap."""
    moment = hands.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == hands:
        return moment
    before = hands.replace(tzinfo=zone, fold=1).astimezone(UTC)  # by the clock of after the gap: still before it
    offset = before.astimezone(zone).utcoffset()
    while moment - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=int((moment - before).total_seconds()) // 2)
        before, moment = (middle, moment) if middle.astimezone(zone).utcoffset() == offset else (before, middle)
    return moment
