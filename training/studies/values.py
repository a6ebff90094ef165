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
from workers.core.models import Curve
from workers.core.runs import RunDir
from workers.jobs.output import metrics, point_files

MAX_KEPT_BYTES = 200  # points of a trial that is over
TAIL = 64 * 1024


def points(training: TrainingJob, key: str) -> list[tuple[int, float]]:
    """(step, value) of a curve over all attempts; of steps that were gone twice the newer ones."""
    place, value = comparison.of_job(training.job, key)
    return list(zip(place.tolist(), value.tolist(), strict=True))


def thinned(own: Sequence[tuple[int, float]]) -> list[list[float]]:
    """What is kept of them once the trial is over; lowest and highest stay."""
    rows = np.array([(step, value, 0.0) for step, value in own], point_files.POINT)
    return [[int(step), float(value)] for step, value, _at in metrics.thin(rows, MAX_KEPT_BYTES).tolist()]


def reached(training: TrainingJob, objectives: Sequence[Objective]) -> list[float] | None:
    """The value of each objective; None where one has none, or ended as no number."""
    curves: dict[str, list[Curve]] = {}
    keys = [one.key for one in objectives]
    rows = Curve.objects.filter(attempt__job=training.job_id, key__in=keys).order_by("attempt__number")
    for curve in rows:
        curves.setdefault(curve.key, []).append(curve)
    found = []
    for one in objectives:
        own = curves.get(one.key)
        if not own or ended_as_no_number(training, one.key):
            return None
        if one.take == BEST:
            ends = [curve.lowest if one.direction == MINIMIZE else curve.highest for curve in own]
            found.append(min(ends) if one.direction == MINIMIZE else max(ends))
        else:
            found.append(own[-1].value)
    return found if all(math.isfinite(value) for value in found) else None


def ended_as_no_number(training: TrainingJob, key: str) -> bool:
    """Whether the newest line with this figure says NaN or infinity, which is in no curve."""
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
