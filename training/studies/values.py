"""What a trial reached: the values of its objectives, out of the curves of its job."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence

import numpy as np

from aiplatform.lib import files
from training.experiments import comparison
from training.runs.models import TrainingJob
from training.studies.objectives import BEST, MINIMIZE, Objective
from workers.core.models import HAS_VALUE, Curve
from workers.core.runs import RunDir
from workers.jobs.output import metrics, point_files

MAX_KEPT_BYTES = 200  # points of a trial that is over
TAIL = 64 * 1024


def points(training: TrainingJob, key: str) -> list[tuple[int, float]]:
    """Return (step, value) of a curve over all attempts; of a step that was repeated, the newer value."""
    steps, value = comparison.of_job(training.job, key)
    return list(zip(steps.tolist(), value.tolist(), strict=True))


def thinned(own: Sequence[tuple[int, float]]) -> list[list[float]]:
    """What is kept of them once the trial is over; lowest and highest stay."""
    rows = np.array([(step, value, 0.0) for step, value in own], point_files.POINT)
    return [[int(step), float(value)] for step, value, _at in metrics.thin(rows, MAX_KEPT_BYTES).tolist()]


def reached(training: TrainingJob, objectives: Sequence[Objective]) -> list[float] | None:
    """Return the value of each objective; None if one has none, or did not end as a finite number."""
    curves: dict[str, list[Curve]] = {}
    keys = [objective.key for objective in objectives]
    rows = Curve.objects.filter(HAS_VALUE, attempt__job=training.job_id, key__in=keys).order_by("attempt__number")
    for curve in rows:
        curves.setdefault(curve.key, []).append(curve)
    values = []
    for objective in objectives:
        own = curves.get(objective.key)
        if not own or ended_as_no_number(training, objective.key):
            return None
        if objective.take == BEST:
            ends = [curve.lowest if objective.direction == MINIMIZE else curve.highest for curve in own]
            values.append(min(ends) if objective.direction == MINIMIZE else max(ends))
        else:
            values.append(own[-1].value)
    return values if all(math.isfinite(value) for value in values) else None


def ended_as_no_number(training: TrainingJob, key: str) -> bool:
    """Whether the newest line with this figure says NaN or infinity, which the row of a curve leaves out."""
    path = RunDir.for_attempt(training.job_id, training.job.attempt_number).metrics
    try:
        with os.fdopen(files.open_beneath(path.parent, path.name), "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - TAIL))
            lines = file.read(TAIL).split(b"\n")
    except (OSError, files.OutsideRoot):
        return False
    for line in reversed(lines):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and key in row:
            value = row[key]
            if isinstance(value, str):  # as programs write it that keep to JSON
                return value.strip().lower().lstrip("+-") in ("nan", "inf", "infinity")
            return isinstance(value, float) and not math.isfinite(value)
    return False
