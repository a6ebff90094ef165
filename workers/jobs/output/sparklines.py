"""Small curves of jobs for rows of lists: one key each, a few points, as coordinates of a drawing."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import F

from workers.core.models import Curve
from workers.jobs.output import metrics, point_files

WIDTH_PX, HEIGHT_PX = 96, 24
MAX_POINTS = 48
_MARGIN_PX = 2


def sparklines(keys: Mapping[int, str]) -> dict[int, str]:
    """Return the points of an SVG polyline by job number; jobs with fewer than two points are left out.

    Args:
        keys: number of the job → key of its curve, of its newest attempt.
    """
    rows = Curve.objects.filter(attempt__job__in=keys, attempt__number=F("attempt__job__attempt_number"))
    rows = rows.filter(key__in=set(keys.values())).select_related("attempt")
    lines = {}
    for curve in rows:
        job_id = curve.attempt.job_id
        if curve.count < 2 or keys[job_id] != curve.key:
            continue
        points = point_files.read(point_files.path(job_id, curve.attempt.number, curve.key), curve.count)
        if len(points) > 1:
            lines[job_id] = _polyline(metrics.thin(points, MAX_POINTS)["value"].tolist())
    return lines


def _polyline(values: list[float]) -> str:
    low, high = min(values), max(values)
    height = HEIGHT_PX - 2 * _MARGIN_PX
    x_step = (WIDTH_PX - 2 * _MARGIN_PX) / (len(values) - 1)
    return " ".join(
        f"{_MARGIN_PX + index * x_step:.1f},"
        f"{HEIGHT_PX - _MARGIN_PX - height * ((value - low) / (high - low) if high > low else 0.5):.1f}"
        for index, value in enumerate(values)
    )
