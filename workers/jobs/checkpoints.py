"""Checkpoints that the attempts of a job left in their run directories."""

from __future__ import annotations

from pathlib import Path

from django.utils.translation import gettext as _

from aiplatform.lib import files
from aiplatform.lib.errors import Invalid
from workers.core.models import Job
from workers.core.runs import RunDir


def newest_checkpoint(job: Job) -> Path | None:
    """The newest complete checkpoint of any attempt; one without `meta.json` does not exist.

    A job writes this folder as it likes, and the next attempt may read what is named here: a link that
    leads elsewhere is no checkpoint.
    """
    for number in range(job.attempt_number, 0, -1):
        folder = RunDir.for_attempt(job.pk, number).checkpoints
        paths = sorted((p for p in folder.glob("step-*") if _is_complete(p)), reverse=True)
        if paths:
            return paths[0]
    return Path(job.resume_from) if job.resume_from and Path(job.resume_from).is_dir() else None


def _is_complete(folder: Path) -> bool:
    meta = folder / "meta.json"
    return not folder.is_symlink() and not meta.is_symlink() and meta.is_file()


def own_checkpoint(job: Job, checkpoint: str) -> Path:
    root = RunDir.for_attempt(job.pk, 1).path.parent
    folder = files.resolve_beneath(root, checkpoint)
    if not (folder / "meta.json").is_file():
        raise Invalid(_("This checkpoint is incomplete."), field="checkpoint")
    return folder
