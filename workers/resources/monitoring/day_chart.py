"""Day chart: the cards' use by hour as bars, beside another day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.utils import timezone

from accounts.models import User
from workers.resources.monitoring import history

HEIGHT = 160.0
WIDTH = 720.0
SLOT = WIDTH / 24
BAR = SLOT * 0.36


@dataclass(frozen=True)
class Bar:
    """One bar in the drawing's units, with what it says."""

    x: str
    y: str
    height: str
    hour: int
    percent: float


@dataclass(frozen=True)
class Day:
    """A day's bars and its mean in percent, None where nothing was sampled."""

    day: date
    bars: list[Bar]
    mean: float | None


@dataclass(frozen=True)
class Chart:
    """Two days side by side. `rows` is the same as a table: (hour, percent then, percent now)."""

    now: Day
    then: Day
    rows: list[tuple[int, float | None, float | None]]

    @property
    def empty(self) -> bool:
        return not self.now.bars and not self.then.bars


def chart(user: User, day: date, than: date) -> Chart:
    """The share of cards in use by hour on `day` and on `than`, in the reader's time zone."""
    hours, before = _hours(user, day), _hours(user, than)
    rows = [(hour, before[hour], hours[hour]) for hour in range(24)]
    return Chart(_day(day, hours, SLOT / 2 + 1), _day(than, before, SLOT / 2 - BAR - 1), rows)


def days_asked(asked_day: str, asked_than: str) -> tuple[date, date]:
    """The days of a query; a wrong one is today, and what it is compared with the same day a week before."""
    today = timezone.localdate()
    day = _read(asked_day) or today
    return day, _read(asked_than) or day - timedelta(days=7)


def _read(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if 2000 <= day.year <= 9000 else None


def _hours(user: User, day: date) -> list[float | None]:
    begin = datetime.combine(day, time(), timezone.get_current_timezone())
    return history.day(user, begin)


def _day(day: date, hours: list[float | None], offset: float) -> Day:
    bars = []
    for hour, percent in enumerate(hours):
        if percent is not None:
            height = max(HEIGHT * min(percent, 100.0) / 100, 1.0)
            x = f"{hour * SLOT + offset:.1f}"
            bars.append(Bar(x, f"{HEIGHT - height:.1f}", f"{height:.1f}", hour, round(percent, 1)))
    measured = [percent for percent in hours if percent is not None]
    return Day(day, bars, sum(measured) / len(measured) if measured else None)
