"""Datasets of what a job left: its outputs are copied and imported like anything that is uploaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.permissions import Action
from aiplatform.lib import files, ids, titles
from aiplatform.lib.errors import Invalid, NotFound, Refusals
from datasets.models import Dataset, Import, Upload
from datasets.services import datasets, imports, sources, uploads
from workers.execution import earlier_outputs
from workers.models import Job
from workers.output import files as output_files


def make(job: Job, *, by: User, name: str = "", folder: str = "") -> Import:
    """Begin to import the outputs of a job that is over as a new dataset of `by`, who may see the job.

    Args:
        name: of the dataset; "" takes that of the job.
        folder: what of the outputs; "" takes all.

    Raises:
        NotAllowed: this person's roles show no jobs.
        Invalid: the job has not ended, left nothing, or has no such folder.
        NameTaken, TooLarge, DiskFull: see `datasets.create` and `uploads.begin`.
    """
    by.require(Action.JOBS_VIEW)
    found = Refusals()
    with found:
        root = _root(job, folder)
        length = sum(_bytes(root / path) for path in files.walk_beneath(root, lenient=True))
        if not length:
            raise Invalid(_("There is nothing in it. Choose a job, or a folder, with files."), field="folder")
    with found:
        taken = set(Dataset.objects.visible_to(by).values_list("name", flat=True))
        name = name or titles.derived(job.name, taken=taken, room=datasets.NAME_MAX)
        datasets.check(owner=by, name=name)
    found.end()
    about = {sources.KEY: SOURCE.name, "filename": f"job-{job.pk}", "job": str(job.pk), "folder": folder}
    with transaction.atomic():
        upload = uploads.begin(owner=by, length=length, metadata=about)
        Upload.objects.filter(pk=upload.pk).update(state=Upload.State.DONE)  # nothing is sent: it lies here
        dataset = datasets.create(owner=by, name=name, intro="")
        return imports.start(dataset=dataset, by=by, upload_id=upload.pk, wanted="auto", agreed=True)


def _bytes(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # removed meanwhile
        return 0


def _root(job: Job, folder: str) -> Path:
    if not job.is_final:
        raise Invalid(_("Its outputs become a dataset once it has ended."), field="job")
    outputs = earlier_outputs.folder_of(job)
    if outputs is None:
        raise Invalid(_("It left no outputs."), field="job")
    try:
        root = files.resolve_beneath(outputs, folder)
    except files.OutsideRoot as exc:
        raise Invalid(exc.message, field="folder") from None
    if not root.is_dir():
        raise Invalid(_("There is no such folder in its outputs."), field="folder")
    return root


def _files(user: User, metadata: Mapping[str, str]) -> Iterator[tuple[Path, str, str]]:
    job = Job.objects.visible_to(user).filter(pk=ids.number(metadata.get("job", "")) or 0).first()
    if job is None or not user.can(Action.JOBS_VIEW):
        raise NotFound(_("The job, or what it left, is gone."))
    root = _root(job, metadata.get("folder", ""))
    for path in files.walk_beneath(root, lenient=True):
        yield root, path, output_files.readable(path)


SOURCE = sources.Source("job", _files)
