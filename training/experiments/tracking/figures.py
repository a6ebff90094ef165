"""Metrics as curves: of a job's run those of its running attempt, of any other run its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from django.utils.translation import gettext as _

from aiplatform.lib import times
from aiplatform.lib.errors import Invalid
from training.experiments.models import Run, RunCurve
from training.experiments.tracking.models import MetricName, OddPoint
from workers.core import live
from workers.core.models import HAS_VALUE, Attempt, Curve
from workers.jobs.output import curve_rows, metric_names, metrics, point_files

MAX_NAME_LENGTH = 250
MAX_ODD = 1000
"""Values that are no numbers, of one run; of more nobody learns anything."""
_SYSTEM = "system/"
Odd = OddPoint.Value


@dataclass(frozen=True)
class Metric:
    """A value as a script reports it; it may be infinite, or not a number."""

    name: str
    step: int
    value: float
    at: datetime


@dataclass(frozen=True)
class Latest:
    """The newest value of a metric; text where it is no number."""

    value: float | str
    step: int
    at: datetime


def keys_of(run: Run, names: Iterable[str]) -> dict[str, str]:
    """Return name → key of its curve: the run's existing one, else as `metric_names` makes it."""
    wanted = list(dict.fromkeys(names))
    stored = dict(MetricName.objects.filter(run=run, name__in=wanted).values_list("name", "key"))
    return {name: stored.get(name) or key_of(name, of_job=run.job_id is not None) for name in wanted}


def key_of(name: str, *, of_job: bool) -> str:
    """The key of a metric's new curve; what a run without a job measures itself stays "system/…"."""
    if not of_job and name.startswith(metric_names.SYSTEM) and metric_names.is_name(name):
        return name
    return metric_names.key_of(name)


def log(run: Run, reported: Sequence[Metric]) -> None:
    """Add values to the curves of a run; repeated values count once.

    Raises:
        Invalid: the run's job is not at work, a name is none, or there are too many curves.
    """
    if not reported:
        return
    owner, attempt = _owner(run)
    named = keys_of(run, (metric.name for metric in reported))
    _check(owner, named)
    MetricName.objects.bulk_create(
        [MetricName(run=run, key=key, name=name) for name, key in named.items() if key != name], ignore_conflicts=True
    )
    points = [
        (named[metric.name], metric.step, metric.value, metric.at) for metric in reported if math.isfinite(metric.value)
    ]
    _log_odd(run, named, [metric for metric in reported if not math.isfinite(metric.value)])
    curve_rows.add(owner, points, once=True)
    if attempt is not None:
        live.nudge(attempt.job_id)


def _owner(run: Run) -> tuple[curve_rows.Owner, Attempt | None]:
    if run.job is None:
        return of_run(run), None
    attempt = run.job.attempts.filter(ended_at=None, number=run.job.attempt_number).first()
    if attempt is None:
        raise Invalid(_("The job of this run is not running, so its metrics are complete."))
    return curve_rows.of_attempt(attempt), attempt


def of_run(run: Run) -> curve_rows.Owner:
    """A run without a job as the owner of its curves."""
    return curve_rows.Owner(RunCurve, "run", run.pk, (f"run-{run.pk}", 1))


def _check(owner: curve_rows.Owner, named: dict[str, str]) -> None:
    for name in named:
        if not name or len(name) > MAX_NAME_LENGTH:
            raise Invalid(
                _("The name of a metric must have 1 to %(most)s characters.") % {"most": MAX_NAME_LENGTH}, field="key"
            )
    rows = owner.model._default_manager.filter(**{f"{owner.column}_id": owner.pk}).exclude(key__startswith=_SYSTEM)
    stored = set(rows.values_list("key", flat=True))
    if len(stored | set(named.values())) > metrics.MAX_KEYS:
        message = _("A run can have at most %(most)s metrics, each with any number of values.")
        raise Invalid(message % {"most": metrics.MAX_KEYS}, field="key")


def _log_odd(run: Run, named: dict[str, str], reported: Sequence[Metric]) -> None:
    if not reported or run.odd_points.count() >= MAX_ODD:
        return
    rows = [
        OddPoint(run=run, key=named[metric.name], step=metric.step, value=_odd(metric.value), at=metric.at)
        for metric in reported
    ]
    OddPoint.objects.bulk_create(rows[:MAX_ODD], ignore_conflicts=True)


def _odd(value: float) -> Odd:
    return Odd.NAN if math.isnan(value) else Odd.HIGH if value > 0 else Odd.LOW


def latest(runs: Sequence[Run]) -> dict[int, dict[str, Latest]]:
    """Return the newest value of each metric, by number of the run and name of the metric."""
    by_run: dict[int, dict[str, Latest]] = {run.pk: {} for run in runs}
    by_job = {run.job_id: run.pk for run in runs if run.job_id is not None}
    of_jobs = (
        Curve.objects.filter(HAS_VALUE, attempt__job__in=by_job).select_related("attempt").order_by("attempt__number")
    )
    for curve in of_jobs:
        by_run[by_job[curve.attempt.job_id]][curve.key] = Latest(curve.value, curve.step, curve.at)
    for row in RunCurve.objects.filter(HAS_VALUE, run__in=by_run):
        by_run[row.run_id][row.key] = Latest(row.value, row.step, row.at)
    for odd in OddPoint.objects.filter(run__in=by_run):
        before = by_run[odd.run_id].get(odd.key)
        if before is None or (before.step, before.at) < (odd.step, odd.at):
            by_run[odd.run_id][odd.key] = Latest(odd.value, odd.step, odd.at)
    for name in MetricName.objects.filter(run__in=by_run):
        own = by_run[name.run_id]
        if name.key in own:
            own[name.name] = own.pop(name.key)
    return by_run


def history(run: Run, name: str) -> list[Latest]:
    """Return all values of a metric, oldest first."""
    key = keys_of(run, [name])[name]
    parts = [point_files.read(file, count) for file, count in _files(run, key)]
    points = np.concatenate([np.empty(0, point_files.POINT), *parts])
    values = [
        Latest(value if math.isfinite(value) else _odd(value), step, times.moment(at))
        for step, value, at in points.tolist()
    ]
    odd = [Latest(row.value, row.step, row.at) for row in run.odd_points.filter(key=key)]
    return sorted([*values, *odd], key=lambda point: point.at) if odd else values


def _files(run: Run, key: str) -> Iterable[tuple[Path, int]]:
    if run.job_id is None:
        for row in RunCurve.objects.filter(run=run, key=key):
            yield point_files.path(f"run-{run.pk}", 1, key), row.count
        return
    rows = Curve.objects.filter(attempt__job=run.job_id, key=key).select_related("attempt").order_by("attempt__number")
    for curve in rows:
        yield point_files.path(run.job_id, curve.attempt.number, key), curve.count
