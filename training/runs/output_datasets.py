"""Datasets of what a job left: its outputs are copied and imported like anything that is uploaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import files, ids
from aiplatform.lib.errors import Invalid, NotFound
from datasets.models import Import
from datasets.services import from_files, sources
from workers.core.models import Job
from workers.execution import earlier_outputs
from workers.jobs.output import files as output_files


def make(job: Job, *, by: User, name: str = "", folder: str = "", **reading: Any) -> Import:
    """Begin to import the outputs of a job that is over as a new dataset of `by`, who may see the job.

    Args:
        name: of the dataset; "" takes that of the job.
        folder: what of the outputs; "" takes all.
        reading: see `from_files.start`.

    Raises:
        NotAllowed: this person's roles show no jobs.
        Invalid: the job has not ended, left nothing, or has no such folder.
        NameTaken, TooLarge, DiskFull: see `datasets.create` and `uploads.create`.
    """
    by.require(Action.JOBS_VIEW)
    origin = {"job": str(job.pk), "folder": folder}
    return from_files.start(
        source=SOURCE, origin=origin, title=job.name, filename=f"job-{job.pk}", by=by, name=name, **reading
    )


def _root(job: Job, folder: str) -> Path:
    if not job.is_final:
        raise Invalid(_("The job must end before its outputs can become a dataset."), field="job")
    outputs = earlier_outputs.folder_of(job)
    if outputs is None:
        raise Invalid(_("The job has no outputs."), field="job")
    try:
        root = files.resolve_beneath(outputs, folder)
    except files.OutsideRoot as exc:
        raise Invalid(exc.message, field="folder") from None
    if not root.is_dir():
        raise Invalid(_("The outputs have no folder “%(folder)s”.") % {"folder": folder}, field="folder")
    return root


def _files(user: User, metadata: Mapping[str, str]) -> Iterator[tuple[Path, str, str]]:
    job = Job.objects.visible_to(user).filter(pk=ids.number(metadata.get("job", "")) or 0).first()
    if job is None or not user.can(Action.JOBS_VIEW):
        raise NotFound(_("The job or its outputs no longer exist."))
    root = _root(job, metadata.get("folder", ""))
    for path in files.walk_beneath(root, lenient=True):
        yield root, path, output_files.readable(path)


SOURCE = sources.Source("job", _files)
