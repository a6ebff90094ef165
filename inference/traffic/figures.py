"""What the counted requests of a service say: how many, how long, how many failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils.timezone import now

from inference.models import Service
from inference.traffic import histogram, proportions
from inference.traffic.counting import PERIOD
from inference.traffic.tables import ServiceTrial, ServiceUsage

#: How far back usage can be shown: name → time, and the length of a bar of its chart.
SPANS = {
    "day": (timedelta(days=1), timedelta(hours=1)),
    "week": (timedelta(days=7), timedelta(hours=6)),
    "month": (timedelta(days=30), timedelta(days=1)),
}


@dataclass(frozen=True)
class Figures:
    """Requests together: counts, and times in milliseconds (None without an answer)."""

    requests: int
    failed: int
    refused: int
    bytes_in: int
    bytes_out: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    failed_low: float  # bounds of the share of failures, 0..1, at 95 %
    failed_high: float
    compared: int
    agreement: float | None  # mean of the copies, 0..1

    @property
    def failed_low_percent(self) -> str:
        return f"{100 * self.failed_low:.1f}"

    @property
    def failed_high_percent(self) -> str:
        return f"{100 * self.failed_high:.1f}"

    @property
    def agreement_percent(self) -> str:
        return "" if self.agreement is None else f"{100 * self.agreement:.1f}"


def of(rows: Iterable[ServiceUsage]) -> Figures:
    """Add rows up."""
    found = list(rows)
    requests, failed = sum(row.requests for row in found), sum(row.failed for row in found)
    times = histogram.together(row.latencies for row in found)
    low, high = proportions.interval(failed, requests)
    compared = sum(row.compared for row in found)

    def ms(share: float) -> float | None:
        seconds = histogram.percentile(times, share)
        return None if seconds is None else round(1000 * seconds, 1)

    return Figures(
        requests=requests,
        failed=failed,
        refused=sum(row.refused for row in found),
        bytes_in=sum(row.bytes_in for row in found),
        bytes_out=sum(row.bytes_out for row in found),
        p50_ms=ms(0.5),
        p95_ms=ms(0.95),
        p99_ms=ms(0.99),
        failed_low=low,
        failed_high=high,
        compared=compared,
        agreement=sum(row.agreement for row in found) / compared if compared else None,
    )


def of_trial(trial: ServiceTrial) -> tuple[Figures, Figures]:
    """What is tried, and what the service has, since the trial began to get requests."""
    rows = list(trial.usage.all())
    return of(row for row in rows if row.candidate), of(row for row in rows if not row.candidate)


@dataclass(frozen=True)
class Bar:
    """One bar of the chart."""

    at: datetime
    requests: int
    failed: int
    height: float  # percent of the highest

    @property
    def top(self) -> str:
        return f"{100 - self.height:.1f}"

    @property
    def height_text(self) -> str:
        return f"{self.height:.1f}"


def since(service: Service, span: str) -> QuerySet[ServiceUsage]:
    """The counts of a service within a span of `SPANS`, copies left out."""
    rows = ServiceUsage.objects.filter(service=service, begins_at__gte=now() - SPANS[span][0] - PERIOD)
    return rows.exclude(candidate=True, trial__mode=ServiceTrial.Mode.SHADOW)


def bars(rows: Iterable[ServiceUsage], span: str) -> list[Bar]:
    """Requests over time, oldest first, gaps as bars of height 0."""
    whole, length = SPANS[span]
    step = length.total_seconds()
    last = int(now().timestamp() // step)
    count = int(whole / length)
    sums: dict[int, list[int]] = {number: [0, 0] for number in range(last - count + 1, last + 1)}
    for row in rows:
        place = int(row.begins_at.timestamp() // step)
        if place in sums:
            sums[place][0] += row.requests
            sums[place][1] += row.failed
    highest = max((requests for requests, _failed in sums.values()), default=0) or 1
    zone = now().tzinfo
    return [
        Bar(datetime.fromtimestamp(place * step, zone), requests, failed, round(100 * requests / highest, 1))
        for place, (requests, failed) in sums.items()
    ]


def by(rows: Iterable[ServiceUsage], name: str) -> list[tuple[Any, Figures]]:
    """Figures for each value of a column (`user`, `version`), the most requests first."""
    groups: dict[Any, list[ServiceUsage]] = {}
    for row in rows:
        groups.setdefault(getattr(row, name), []).append(row)
    made = [(value, of(group)) for value, group in groups.items()]
    return sorted(made, key=lambda pair: -pair[1].requests)
