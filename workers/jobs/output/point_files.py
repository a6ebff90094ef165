"""Points of curves in files of their own: a folder for each attempt, a file for each key, 24 bytes a point.

A file is a run of little-endian records `step` (int64), `value` (float64) and `at` (float64, unix seconds), in the
order in which they were reported. How many of them count says the row of the curve (`workers.core.models.Curve.count`):
whoever adds points writes them behind those first and then the row, so that what a killed process left behind is
written over. The folders lie outside of run directories, where no job can put a link in their place.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings

from workers.jobs.output import metric_names

POINT = np.dtype([("step", "<i8"), ("value", "<f8"), ("at", "<f8")])
Points = np.ndarray[Any, np.dtype[Any]]


def folder(job_id: int | str, number: int) -> Path:
    """Return where the curves of an attempt lie, or of what is no job: "run-12" as attempt 1."""
    return Path(settings.DATA_ROOT) / "curves" / str(job_id) / str(number)


def path(job_id: int | str, number: int, key: str) -> Path:
    """Return the file of one curve."""
    return folder(job_id, number) / f"{metric_names.file_name(key)}.points"


@contextmanager
def alone(job_id: int | str, number: int) -> Iterator[None]:
    """Be the only one who adds points to an attempt; others wait."""
    directory = folder(job_id, number)
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write(file: Path, behind: int, points: Iterable[tuple[int, float, float]]) -> None:
    """Write points behind the first `behind` of a file, over what exists there.

    Raises:
        OSError: the disk is full, say. What counts is untouched.
    """
    data = memoryview(np.array(list(points), POINT).tobytes())
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, 0o640)
    try:
        offset = behind * POINT.itemsize
        while data:
            written = os.pwrite(descriptor, data, offset)
            data, offset = data[written:], offset + written
    finally:
        os.close(descriptor)


def read(file: Path, count: int, *, first: int = 0) -> Points:
    """Return the points from number `first` up to `count`, not to be changed.

    They are mapped, not loaded: a program may report tens of millions, and a comparison looks at twenty such curves.
    What a machine that lost its power had not written yet is left out: the file is shorter, or holds zeros there.
    """
    try:
        available = min(count, file.stat().st_size // POINT.itemsize) - first
    except FileNotFoundError:
        return np.empty(0, POINT)
    if available <= 0:
        return np.empty(0, POINT)
    points = np.memmap(file, POINT, "r", first * POINT.itemsize, available)
    written = points["at"] != 0
    return np.asarray(points) if written.all() else points[written]
