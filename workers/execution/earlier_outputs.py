"""Outputs of earlier jobs as inputs of a later one: linked below inputs/, named in AIP_INPUTS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import walk_beneath
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import COMPLETED
from workers.jobs.output import files


class OutputsGone(DomainError, code="outputs_gone"):
    """A job was to read what an earlier one left, and it is no longer there."""


def folder_of(job: Job) -> Path | None:
    """The outputs of a job that is over: of its newest attempt that completed, else of the newest with any."""
    folders = {number: files.folder_of(job, number) for number in files.attempts(job)}
    filled = {
        number: folder for number, folder in folders.items() if folder and any(walk_beneath(folder, lenient=True))
    }
    completed = set(job.attempts.filter(state__in=COMPLETED).values_list("number", flat=True))
    return next((folder for number, folder in filled.items() if number in completed), next(iter(filled.values()), None))


def linked(attempt: Attempt, run: RunDir) -> Mapping[str, str]:
    """Link what the attempt's job reads of earlier ones, as inputs/job-NUMBER; returns variables that name it.

    Raises:
        OutputsGone: the earlier job left nothing, or its files were removed since.
    """
    rows = []
    read = [dependency for dependency in attempt.job.dependencies.all() if dependency.outputs]
    for dependency in read:  # few have any: they read the other job themselves
        folder = folder_of(dependency.on)
        if folder is None:
            raise OutputsGone(wording.message("job.outputs_gone", job=dependency.on_id))
        run.inputs.mkdir(parents=True, exist_ok=True)
        link = run.inputs / f"job-{dependency.on_id}"
        if not link.is_symlink():
            link.symlink_to(folder)
        rows.append({"job": dependency.on_id, "name": dependency.on.name, "dir": str(folder)})
    if not rows:
        return {}
    return {"AIP_INPUT_DIR": str(rows[0]["dir"]), "AIP_INPUTS": json.dumps(rows, ensure_ascii=False)}
