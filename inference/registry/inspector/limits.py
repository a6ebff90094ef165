"""Limits that the inspector sets for itself before it reads the first byte of a model."""

from __future__ import annotations

import os
import resource
from pathlib import Path

BASE_BYTES = 2 << 30  # for Python, its libraries and the structure of a model
MAX_BYTES = 10 << 30
TIMES_FILE = 3  # a runtime holds the weights of an ONNX file, a copy of them, and what it makes of them
MAX_FILE_BYTES = 21 << 30  # of an unpacked file; above `inspections.MAX_BYTES`, whose error is the one shown
MAX_OPEN_FILES = 512
MAX_PROCESSES = 256  # with threads, of the user that only inspectors have


def restrict(*, seconds: int) -> None:
    """Limit memory, CPU time, sizes of files and core dumps of this process."""
    for name, soft, hard in (
        (resource.RLIMIT_DATA, BASE_BYTES, MAX_BYTES),
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_FSIZE, MAX_FILE_BYTES, MAX_FILE_BYTES),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES, MAX_OPEN_FILES),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        highest = resource.getrlimit(name)[1]
        if highest != resource.RLIM_INFINITY:
            soft, hard = min(soft, highest), min(hard, highest)
        resource.setrlimit(name, (soft, hard))
    if os.geteuid():
        highest = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        limit = MAX_PROCESSES if highest == resource.RLIM_INFINITY else min(MAX_PROCESSES, highest)
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def allow_runtime(model: Path) -> None:
    """Raise the memory limit to what a runtime needs for this file, at most MAX_BYTES."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = BASE_BYTES + TIMES_FILE * model.stat().st_size
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_DATA, (max(soft, limit), hard))
