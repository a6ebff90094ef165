"""Trainings for tests: submitted by the product's own service, run by nobody."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from accounts.models import User
from datasets.files import homes
from datasets.models import DatasetVersion
from tests.factories import datasets, work
from training.programs import snapshots
from training.programs.models import CodeSnapshot
from training.runs import jobs
from training.runs.drafts import TrainingRequest
from training.runs.models import TrainingJob
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir


def version(owner: User, name: str = "cells", **fields: Any) -> DatasetVersion:
    return datasets.version(datasets.dataset(owner, name), **fields)


def training(owner: User, *, state: str = "queued", data: DatasetVersion | None = None, **fields: Any) -> TrainingJob:
    """A submitted training whose job stands in `state`, with its attempt and run directory where it was placed."""
    given: dict[str, Any] = {"name": "cells", "gpus_per_node": 0, "cpus": 1.0}
    if "version" not in fields:
        given["version"] = data or version(owner)
    made = jobs.submit(user=owner, request=TrainingRequest(**given | fields))
    if state != "queued":
        move(made, state)
    return made


def move(training: TrainingJob, state: str, *, attempt: int = 1) -> RunDir:
    """Put the job into `state` as attempt number `attempt`, without the spine."""
    over = state in ("succeeded", "finished_early", "failed", "stopped", "lost")
    Attempt.objects.filter(job=training.job, ended_at=None).update(ended_at=training.job.created_at)
    Job.objects.filter(pk=training.job_id).update(**{"state": state, "attempt_number": attempt})
    ended = training.job.created_at if over else None
    Attempt.objects.update_or_create(job=training.job, number=attempt, defaults={"state": state, "ended_at": ended})
    training.job.refresh_from_db()
    run = RunDir.for_attempt(training.job_id, attempt)
    for folder in (run.code, run.inputs, run.outputs, run.checkpoints):
        folder.mkdir(parents=True, exist_ok=True)
    return run


def checkpoint(run: RunDir, step: int, *, metric: float | None = None, whole: bool = True) -> Path:
    """A checkpoint as the protocol wants it; `whole=False` leaves its weights out."""
    folder = run.checkpoints / f"step-{step:06d}"
    folder.mkdir(parents=True)
    weights = b"weights of step %d" % step
    if whole:
        (folder / "model.safetensors").write_bytes(weights)
    meta = {
        "format": 1,
        "step": step,
        "epoch": step / 10,
        "time": 1_700_000_000.0 + step,
        "metric": metric,
        "files": {"model.safetensors": hashlib.sha256(weights).hexdigest()},
    }
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


def code(owner: User, folder: Path, **files: str) -> CodeSnapshot:
    """A snapshot with files given as `train="print(1)"` (→ train.py); taken from the owner's home."""
    home = homes.home_of(owner) / folder.name
    home.mkdir(parents=True, exist_ok=True)
    for name, text in (files or {"train": "print(1)\n"}).items():
        (home / f"{name}.py").write_text(text)
    return snapshots.from_home(owner=owner, folder=folder.name)


__all__ = ["checkpoint", "code", "move", "training", "version", "work"]
