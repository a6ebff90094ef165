"""What the counted requests of a service say: how many, how long, how many failed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils.timezone import localtime, make_aware

from inference.serving.models import Service, ServiceTrial, ServiceUsage
from inference.serving.traffic import histogram, proportions

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
    def failed_percent(self) -> str:
        return f"{100 * self.failed / self.requests:.1f}" if self.requests else "0"

    @property
    def agreement_percent(self) -> str:
        return "" if self.agreement is None else f"{100 * self.agreement:.1f}"


def summarize(rows: Iterable[ServiceUsage]) -> Figures:
    """Add up rows."""
    usage = list(rows)
    requests, failed = sum(row.requests for row in usage), sum(row.failed for row in usage)
    times = histogram.together(row.latencies for row in usage)
    low, high = proportions.interval(failed, requests)
    compared = sum(row.compared for row in usage)

    def ms(share: float) -> float | None:
        seconds = histogram.percentile(times, share)
        return None if seconds is None else round(1000 * seconds, 1)

    return Figures(
        requests=requests,
        failed=failed,
        refused=sum(row.refused for row in usage),
        bytes_in=sum(row.bytes_in for row in usage),
        bytes_out=sum(row.bytes_out for row in usage),
        p50_ms=ms(0.5),
        p95_ms=ms(0.95),
        p99_ms=ms(0.99),
        failed_low=low,
        failed_high=high,
        compared=compared,
        agreement=sum(row.agreement for row in usage) / compared if compared else None,
    )


def of_trial(trial: ServiceTrial) -> tuple[Figures, Figures]:
    """What is tried, and what the service has, since the trial began to get requests."""
    rows = list(trial.usage.all())
    return summarize(row for row in rows if row.candidate), summarize(row for row in rows if not row.candidate)


def _begins(span: str) -> list[datetime]:
    """Return the start of each bar, oldest first: full hours, quarters of a day or days of the reader's time zone."""
    span_length, length = SPANS[span]
    hours = int(length.total_seconds() // 3600)
    moment = localtime()
    last = moment.replace(hour=moment.hour - moment.hour % hours, minute=0, second=0, microsecond=0)
    back = range(int(span_length / length) - 1, -1, -1)
    if hours < 24:
        return [last.astimezone(UTC) - number * length for number in back]
    days = [last.date() - number * length for number in back]  # days of 23 or 25 hours too
    return [make_aware(datetime.combine(day, time.min)) for day in days]


def since(service: Service, span: str) -> QuerySet[ServiceUsage]:
    """The counts of a service within a span of `SPANS`, copies left out."""
    return _since(span).filter(service=service)


def of_day(services: Iterable[Service]) -> dict[int, Figures]:
    """The requests of the last day by service, in one query; services without requests have zeros."""
    rows: dict[int, list[ServiceUsage]] = {service.pk: [] for service in services}
    for row in _since("day").filter(service__in=rows):
        rows[row.service_id].append(row)
    return {number: summarize(usage) for number, usage in rows.items()}


def _since(span: str) -> QuerySet[ServiceUsage]:
    rows = ServiceUsage.objects.filter(begins_at__gte=_begins(span)[0])
    return rows.exclude(candidate=True, trial__mode=ServiceTrial.Mode.SHADOW)


def series(rows: Iterable[ServiceUsage], span: str) -> dict[str, Any]:
    """Return requests and latencies over time, as the charts of the page read them; the oldest part first.

    `at` holds Unix times, `requests`, `failed` and `refused` counts (0 in gaps), `p50` and `p95` milliseconds (None in
    gaps).
    """
    begins = _begins(span)
    parts: list[list[ServiceUsage]] = [[] for _begin in begins]
    for row in rows:
        if (index := bisect_right(begins, row.begins_at) - 1) >= 0:
            parts[index].append(row)
    figures = [summarize(usage) for usage in parts]
    return {
        "at": [int(begin.timestamp()) for begin in begins],
        "requests": [part.requests for part in figures],
        "failed": [part.failed for part in figures],
        "refused": [part.refused for part in figures],
        "p50": [part.p50_ms for part in figures],
        "p95": [part.p95_ms for part in figures],
    }


def by(rows: Iterable[ServiceUsage], name: str) -> list[tuple[Any, Figures]]:
    """Figures for each value of a column (`user`, `version`), the most requests first."""
    groups: dict[Any, list[ServiceUsage]] = {}
    for row in rows:
        groups.setdefault(getattr(row, name), []).append(row)
    made = [(value, summarize(group)) for value, group in groups.items()]
    return sorted(made, key=lambda pair: -pair[1].requests)
