"""Add the counts of past hours up to days, so that a month of many servers is few rows."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count
from django.db.models.functions import TruncDay
from django.utils.timezone import now

from inference.kit.models.statistics import MAX_CLASSES
from inference.registry import drift
from inference.serving.monitoring.models import ServiceStatistics

AFTER = timedelta(days=2)  # a day is read by the hour until then
AT_ONCE = 50  # days of one version in one round


def roll_up() -> int:
    """Add up whole days of UTC that are over for two days; how many rows that makes fewer."""
    today = now().replace(hour=0, minute=0, second=0, microsecond=0)
    days = (
        ServiceStatistics.objects.filter(begins_at__lt=today - AFTER)
        .annotate(day=TruncDay("begins_at"))
        .order_by()
        .values("service", "version", "day")
        .annotate(rows=Count("pk"))
        .filter(rows__gt=1)
    )
    return sum(_merge_day(each["service"], each["version"], each["day"]) for each in days[:AT_ONCE])


@transaction.atomic
def _merge_day(service: int, version: int | None, day: datetime) -> int:
    rows = list(
        ServiceStatistics.objects.select_for_update().filter(
            service=service, version=version, begins_at__gte=day, begins_at__lt=day + timedelta(days=1)
        )
    )
    if len(rows) < 2:
        return 0
    tally = drift.add_up(row.tally for row in rows)
    frequent = sorted(tally["classes"].items(), key=lambda pair: -pair[1])[:MAX_CLASSES]
    tally["classes"] = dict(frequent)
    ServiceStatistics.objects.filter(pk__in=[row.pk for row in rows]).delete()
    ServiceStatistics.objects.create(
        service_id=service, version_id=version, begins_at=day, images=tally["images"], tally=tally,
        slot=f"day:{service}:{version or 0}:{day:%Y-%m-%d}",
    )  # fmt: skip
    return len(rows) - 1
