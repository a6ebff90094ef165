"""Who used how much: card-hours, core-hours, jobs and waiting times of a span, by person, group or cluster."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Min, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User, UserGroup
from aiplatform.lib.errors import Invalid
from workers.core.clock import now
from workers.core.models import Allocation, Attempt, Device, Job, VirtualCluster
from workers.core.models.nodes import SHARES_PER_DEVICE

BY = ("user", "group", "cluster")
MAX_DURATION = timedelta(days=366)


@dataclass(frozen=True)
class Row:
    """One person, group or cluster. Waits are None where nothing began in the span."""

    name: str
    gpu_hours: float
    cpu_hours: float
    jobs: int
    wait_p50_s: float | None
    wait_p95_s: float | None


@dataclass(frozen=True)
class Report:
    """Rows by card-hours, then core-hours, and all of them together. In groups a person may count several times."""

    begin: datetime
    end: datetime
    by: str
    rows: list[Row]
    total: Row


@dataclass
class _Sum:
    gpu_s: float = 0.0
    cpu_s: float = 0.0
    jobs: set[int] = field(default_factory=set)
    waits: list[float] = field(default_factory=list)

    def row(self, name: str) -> Row:
        waits = sorted(self.waits)
        return Row(
            name,
            round(self.gpu_s / 3600, 2),
            round(self.cpu_s / 3600, 2),
            len(self.jobs),
            percentile(waits, 50),
            percentile(waits, 95),
        )


def first_start(user: User, *, until: datetime) -> datetime | None:
    """When the first attempt of the year before `until` got its devices, of those that `user` may see."""
    attempts = Attempt.objects.filter(job__in=Job.objects.visible_to(user), assigned_at__gte=until - MAX_DURATION)
    first: datetime | None = attempts.aggregate(first=Min("assigned_at"))["first"]
    return first


def report(user: User, *, begin: datetime, end: datetime, by: str = "user") -> Report:
    """What the jobs that `user` may see used from `begin` to `end`.

    Devices count from their assignment to the end of the attempt as far as it lies in the span, paused time included
    but not the time for which the job was evicted from them; a share of a card counts as that part. A wait is counted
    where the job first got its devices.

    Raises:
        Invalid: an unknown `by`, an end before the begin, or more than a year.
    """
    if by not in BY:
        raise Invalid(_("Request one of %(spans)s.") % {"spans": ", ".join(BY)})
    if not begin < end or end - begin > MAX_DURATION + timedelta(days=1):
        raise Invalid(_("The last day must be after the first, by at most a year."))
    moment = now()
    begin, end = begin.astimezone(UTC), end.astimezone(UTC)  # else a day has 24 hours when clocks are put forward
    attempts = Attempt.objects.filter(
        Q(ended_at=None) | Q(ended_at__gt=begin), job__in=Job.objects.visible_to(user), assigned_at__lt=end
    )
    cards = _cards(attempts)
    names = _names(by)
    sums: dict[str, _Sum] = defaultdict(_Sum)
    total = _Sum()
    columns = ("pk", "number", "job", "job__owner", "job__cluster", "job__cpus", "job__nodes", "job__created_at")
    for row in attempts.values(*columns, "assigned_at", "ended_at", "evicted_at", "evicted_s").iterator(2000):
        over = min(row["ended_at"] or moment, end)
        held_s = max(0.0, (over - max(row["assigned_at"], begin)).total_seconds())
        evicted_s = row["evicted_s"]  # off its cards; the host's memory and cores it kept
        if row["evicted_at"]:
            evicted_s += max(0.0, (over - row["evicted_at"]).total_seconds())
        wait = (row["assigned_at"] - row["job__created_at"]).total_seconds()
        first = row["number"] == 1 and row["assigned_at"] >= begin
        for sum_of in (total, *(sums[name] for name in names(row))):
            sum_of.gpu_s += max(0.0, held_s - evicted_s) * cards.get(row["pk"], 0) / SHARES_PER_DEVICE
            sum_of.cpu_s += held_s * row["job__cpus"] * row["job__nodes"]
            sum_of.jobs.add(row["job"])
            if first:
                sum_of.waits.append(max(0.0, wait))
    rows = [job_sum.row(name) for name, job_sum in sums.items()]
    rows.sort(key=lambda row: (-row.gpu_hours, -row.cpu_hours, row.name))
    return Report(begin, end, by, rows, total.row(_("All")))


def _cards(attempts: Any) -> dict[int, int]:
    """Shares of cards by attempt."""
    held = Allocation.objects.filter(attempt__in=attempts).exclude(device__kind=Device.Kind.CPU)
    return dict(held.values_list("attempt").annotate(sum=Sum("share")).order_by())


def _names(by: str) -> Any:
    """How the rows are called that an attempt counts for."""
    if by == "cluster":
        clusters = dict(VirtualCluster.objects.values_list("pk", "name"))
        return lambda row: [clusters.get(row["job__cluster"], "–")]
    people = dict(User.objects.values_list("pk", "username"))
    if by == "user":
        return lambda row: [people.get(row["job__owner"], "–")]
    groups: dict[int, list[str]] = defaultdict(list)
    for person, name in UserGroup.objects.filter(users__isnull=False).values_list("users", "name"):
        groups[person].append(name)
    return lambda row: groups.get(row["job__owner"]) or [_("No group")]


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The nearest-rank percentile of sorted `values`; None of none."""
    if not values:
        return None
    return values[max(0, math.ceil(percent / 100 * len(values)) - 1)]


def span(first: str, last: str) -> tuple[datetime, datetime]:
    """Begin and end of whole days in the reader's zone; without days the 30 up to today.

    Args:
        first, last: "2026-03-01"; both days are counted.

    Raises:
        Invalid: not a day.
    """
    until = _day(last) or timezone.localdate()
    since = _day(first) or until - timedelta(days=29)
    zone = timezone.get_current_timezone()
    return datetime.combine(since, time(), zone), datetime.combine(until + timedelta(days=1), time(), zone)


def _day(text: str) -> date | None:
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or not 2000 <= day.year <= 9000:
        raise Invalid(_("“%(text)s” is not a valid date such as 2026-03-31.") % {"text": text[:30]})
    return day


HEADER = ("name", "gpu_hours", "cpu_hours", "jobs", "wait_p50_s", "wait_p95_s")


def table(report: Report) -> Iterable[tuple[object, ...]]:
    """The report's lines for a spreadsheet, the sum last."""
    for row in (*report.rows, report.total):
        yield tuple(getattr(row, name) for name in HEADER)
