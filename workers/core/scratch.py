"""Scratch: what may be lost and must be fast, decoded images of trainings and temporary files of jobs.

It lies below `AIP_SCRATCH_ROOT` where that names a disk of the machine, else below the data folder.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Q

from aiplatform import env
from workers.core.clock import now
from workers.core.models import Attempt
from workers.core.runs import RunDir

TMP = "tmp"
RETENTION = timedelta(minutes=10)  # after an attempt's end, until nothing of it runs any more


def root() -> Path:
    """The folder on this machine."""
    return Path(env.SCRATCH_ROOT or settings.DATA_ROOT)


def image_cache(owner_id: int, name: str) -> Path:
    """Where trainings of a person keep the decoded images of a dataset version."""
    return root() / "cache" / str(owner_id) / name


def job_tmp(run: RunDir, rank: int) -> Path:
    """The folder for temporary files of a rank; in its run directory unless there is a scratch disk."""
    if not env.SCRATCH_ROOT:
        return run.of_rank(rank) / TMP
    return root() / TMP / run.path.parent.name / run.path.name / str(rank)


def make(folder: Path) -> None:
    """Create a folder that only its own jobs write to; its parents can be passed, but not listed."""
    if not env.SCRATCH_ROOT:
        folder.mkdir(parents=True, exist_ok=True)
        return
    for each in [*reversed(folder.relative_to(root()).parents)][1:]:
        path = root() / each
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o711)
    folder.mkdir(exist_ok=True, mode=0o700)


def sweep() -> int:
    """Remove temporary files of attempts that ended a while ago from the scratch disk; return of how many."""
    if not env.SCRATCH_ROOT:
        return 0
    attempts = {path: (path.parent.name, path.name) for path in (root() / TMP).glob("*/*") if path.name.isdecimal()}
    live = Attempt.objects.filter(Q(ended_at=None) | Q(ended_at__gt=now() - RETENTION))
    live_attempts = {(str(job), str(number)) for job, number in live.values_list("job_id", "number")}
    over = [path for path, attempt in attempts.items() if attempt not in live_attempts]
    for path in over:
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):  # another attempt has its files there
            path.parent.rmdir()
    return len(over)
