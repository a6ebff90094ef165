"""Runs with figures for reports: those of a script elsewhere, whose points are written at once, however many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from django.utils.timezone import now

from accounts.models import User
from training.experiments import records
from training.experiments.models import Run, RunCurve
from workers.jobs.output import point_files


def run(
    owner: User,
    name: str,
    *,
    params: Mapping[str, Any] | None = None,
    curves: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Run:
    """A run without a job; `curves`: key → values, at the steps 1, 2, 3 …"""
    made = Run.objects.create(owner=owner, name=name, **{"state": "succeeded", **fields})
    records.set_params(made, params or {})
    for key, values in (curves or {}).items():
        points(made, key, np.asarray(values, float))
    return made


def points(made: Run, key: str, values: Any) -> None:
    """Add a curve with these values, a second apart."""
    moment = now()
    rows = np.zeros(len(values), point_files.POINT)
    rows["step"] = np.arange(1, len(values) + 1)
    rows["value"], rows["at"] = values, moment.timestamp() + np.arange(len(values))
    file = point_files.path(f"run-{made.pk}", 1, key)
    file.parent.mkdir(parents=True, exist_ok=True)
    rows.tofile(file)
    finite = values[np.isfinite(values)] if np.isfinite(values).any() else np.zeros(1)
    RunCurve.objects.create(
        run=made, key=key, count=len(values), step=len(values), value=float(finite[-1]), at=moment,
        lowest=float(finite.min()), lowest_step=1, highest=float(finite.max()), highest_step=1,
    )  # fmt: skip
