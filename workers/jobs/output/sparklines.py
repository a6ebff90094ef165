"""Small curves of jobs for rows of lists: one key each, a few points, as coordinates of a drawing."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import F

from workers.core.models import Curve
from workers.jobs.output import metrics, point_files

WIDTH_PX, HEIGHT_PX = 96, 24
MAX_POINTS = 24  # a list has up to a hundred of them
_MARGIN_PX = 2


def sparklines(keys: Mapping[int, str]) -> dict[int, str]:
    """Return the points of an SVG polyline by job number; jobs with fewer than two points are left out.

    Args:
        keys: number of the job → key of its curve, of its newest attempt.
    """
    curves = Curve.objects.filter(attempt__job__in=keys, attempt__number=F("attempt__job__attempt_number"))
    curves = curves.filter(key__in=set(keys.values()))
    rows = curves.values_list("attempt__job", "attempt__number", "key", "count")
    lines = {job: sparkline(job, attempt, key, count) for job, attempt, key, count in rows if keys[job] == key}
    return {job: line for job, line in lines.items() if line}


def sparkline(job_id: int, attempt: int, key: str, count: int) -> str:
    """Return the points of an SVG polyline of one curve; "" of fewer than two points.

    Args:
        count: points of its file that count, as its row says.
    """
    if count < 2:
        return ""
    points = metrics.only_finite(point_files.read(point_files.path(job_id, attempt, key), count))
    return _polyline(metrics.thin(points, MAX_POINTS)["value"].tolist()) if len(points) > 1 else ""


def _polyline(values: list[float]) -> str:
    low, high = min(values), max(values)
    height = HEIGHT_PX - 2 * _MARGIN_PX
    x_step = (WIDTH_PX - 2 * _MARGIN_PX) / (len(values) - 1)
    return " ".join(
        f"{_MARGIN_PX + index * x_step:.0f},"
        f"{HEIGHT_PX - _MARGIN_PX - height * ((value - low) / (high - low) if high > low else 0.5):.1f}"
        for index, value in enumerate(values)
    )
