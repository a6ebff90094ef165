"""Models that were not trained here: from an upload, a path in a home, or what any finished job left behind.

Files that can run code when they are opened (pickles, archives of torch) are opened by a job in its sandbox, see
`model_jobs`. All others are read by parsers that run nothing, in a sandboxed process, see `inspections`.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import copies, file_names, files, trees
from aiplatform.lib.errors import Invalid, NotFound, Refusals
from datasets.files import homes, paths
from inference.registry import import_jobs, inspections, model_jobs
from inference.registry import registration as registry
from inference.registry.file_copies import TooLarge, copy_rest
from inference.registry.formats.declared import NOTHING, Declared
from inference.registry.formats.folder import KEPT_SUFFIXES, MAX_EXTRA_BYTES
from inference.registry.inspections import ARCHIVES, MAX_BYTES, MAX_FILES, ModelRefused
from inference.registry.models import ModelTask, ModelVersion
from inference.registry.registration import Origin
from workers.core.models import Job
from workers.execution import earlier_outputs
from workers.jobs.output import files as output_files

TORCH = (".pt", ".pth", ".ckpt", ".pt2", ".bin")
MODEL = (".onnx", ".safetensors")
MAX_LISTED, DEEPEST = 100_000, 32
LOOK_S = 5.0  # longest that a folder is looked through
BESIDE = ("model.json", "config.json", "preprocessor_config.json")  # come with a file that they describe
Source = ModelVersion.Source


@dataclass(frozen=True)
class ModelSource:
    """Files of a model, not copied yet.

    Args:
        bring: makes the folder it is given and puts the files there; of a torch archive, that file alone.
        torch: its suffix where it is a torch archive, else "".
        size_bytes: of the files when they were found, packed where they are packed.
    """

    bring: Callable[[Path], None]
    origin: Origin
    torch: str = ""
    size_bytes: int = 0


def import_model(
    *,
    user: User,
    brought: ModelSource,
    declared: Declared = NOTHING,
    made: Callable[[ModelVersion], object] = lambda _version: None,
    queued: Callable[[ModelTask], object] = lambda _task: None,
    **fields: Any,
) -> ModelVersion | ModelTask:
    """Create a version of the files, or a job that will: for torch archives, and for files that take long to read.

    Args:
        made, queued: called in the transaction that makes the one or the other.
        fields: name, description and visibility of a new model, or `model`: see `registration.register`.

    Raises:
        DomainError: see `registration.register`, `model_jobs.convert` and `import_jobs.submit`.
    """
    if brought.torch:
        return model_jobs.convert(
            user=user, bring=brought.bring, suffix=brought.torch, label=brought.origin.label, declared=declared,
            queued=queued, **fields,
        )  # fmt: skip
    fields |= {"user": user, "bring": brought.bring, "origin": brought.origin, "declared": declared}
    if brought.size_bytes <= import_jobs.LARGE_BYTES:
        try:
            return registry.register(made=made, bounds=import_jobs.REQUEST_LIMITS, **fields)
        except inspections.TooSlow as slow:
            if slow.others:
                raise
    return import_jobs.submit(queued=queued, **fields)


def submit_job(*, user: User, brought: ModelSource, **fields: Any) -> ModelTask:
    """Queue a job that creates a version of the files, whatever their size."""
    if brought.torch:
        return model_jobs.convert(
            user=user, bring=brought.bring, suffix=brought.torch, label=brought.origin.label, **fields
        )
    return import_jobs.submit(user=user, bring=brought.bring, origin=brought.origin, **fields)


def check(
    *, user: User, name: str | None = None, task: str = "", layout: str = "", pixels: str = "", resize: str = ""
) -> None:
    """Check the name of a new model and the declaration before any file is read."""
    refusals = Refusals()
    with refusals:
        registry.check_name(user=user, name=name)
    with refusals:
        Declared(task=task, layout=layout, pixels=pixels, resize=resize).check()
    refusals.end()


def from_path(user: User, path: str, job: Job | None) -> ModelSource:
    """Return the files at a path: in the outputs of `job`, which `user` may see, or in the home of `user`.

    Raises:
        DomainError: see `from_job` and `from_home`.
    """
    return from_job(job, path, by=user) if job is not None else from_home(user, path)


def from_upload(archive: Path, filename: str, declared: Declared = NOTHING, *, tried: bool = False) -> ModelSource:
    """Return the files of an upload; a model that is run in a trial will be declared later."""
    suffix, is_declared = Path(filename).suffix.lower(), bool(declared) or tried
    origin = Origin(Source.IMPORT if is_declared else Source.UPLOAD, label=filename if is_declared else "")
    if suffix in TORCH:
        return ModelSource(partial(_single, archive, suffix), origin, suffix)
    return ModelSource(partial(inspections.unpack, archive, filename), origin, size_bytes=archive.stat().st_size)


def _single(archive: Path, suffix: str, into: Path) -> None:
    into.mkdir()
    with archive.open("rb") as source:
        copies.copy(source, into / f"archive{suffix}")


def from_home(user: User, path: str) -> ModelSource:
    """A file or a folder in the home of a person.

    Raises:
        Invalid: it leads out of the home, or there is nothing of a model at it.
    """
    return _at_path(homes.home_of(user), _normalize(path), Origin(Source.FILES, label=path))


def from_job(job: Job, path: str = "", *, by: User) -> ModelSource:
    """What a job that is over left in its outputs; `by` may see the job.

    Args:
        path: a file or a folder below its outputs; "" takes `model` where the job left that, else all of them.

    Raises:
        NotAllowed: this person's roles show no jobs.
        Invalid: the job has not ended, left nothing, or nothing of a model at the path.
    """
    by.require(Action.JOBS_VIEW)
    if not job.is_final:
        raise Invalid(_("The outputs become a model after the job has ended."), field="job")
    outputs = earlier_outputs.folder_of(job)
    if outputs is None:
        raise Invalid(_("The run has no outputs."), field="job")
    if not path and (outputs / "model").is_dir():
        path = "model"
    attempt = next(number for number in output_files.attempts(job) if output_files.folder_of(job, number) == outputs)
    return _at_path(outputs, _normalize(path), Origin(Source.JOB, job, attempt, path))


def _normalize(path: str) -> str:
    """Return the path without redundant parts."""
    return os.fsdecode(b"/".join(file_names.parse(path)))


def _at_path(root: Path, path: str, origin: Origin) -> ModelSource:
    with paths.refusals():
        at = files.resolve_beneath(root, path)
        if at.is_dir():
            return _folder(root, path, origin)
        if not at.is_file():
            raise Invalid(_("No file or folder exists at this path."), field="path")
    suffix = at.suffix.lower()
    if suffix in TORCH:
        return ModelSource(partial(_copy_files, root, {path: f"archive{suffix}"}), origin, suffix)
    if suffix in MODEL:
        there = [name for name in BESIDE if at.with_name(name).is_file() and not at.with_name(name).is_symlink()]
        beside = [str(PurePosixPath(path).with_name(name)) for name in there]
        names = {name: PurePosixPath(name).name for name in (path, *beside)}
        return ModelSource(partial(_copy_files, root, names), origin, size_bytes=at.stat().st_size)
    if suffix and suffix in ARCHIVES:
        return ModelSource(partial(_unpacked, root, path), origin, size_bytes=at.stat().st_size)
    message = _("%(name)s is not a model. Choose a .onnx, .safetensors or .pt file, an archive, or a folder with one.")
    raise Invalid(message % {"name": _printable(at.name)}, field="path")


def _folder(root: Path, path: str, origin: Origin) -> ModelSource:
    """Return the model files of a folder: its only torch archive if there is nothing else to take."""
    names = sorted(_below(root, path))
    if any(name.lower().endswith(MODEL) for name in names):
        selected = [name for name in names if PurePosixPath(name).suffix.lower() in KEPT_SUFFIXES]
        within = {name: name.removeprefix(f"{path}/") for name in selected}
        return ModelSource(partial(_copy_files, root, within), origin, size_bytes=_size_of(root, selected))
    archives = [name for name in names if name.lower().endswith(TORCH)]
    if len(archives) == 1:
        suffix = PurePosixPath(archives[0]).suffix.lower()
        return ModelSource(partial(_copy_files, root, {archives[0]: f"archive{suffix}"}), origin, suffix)
    if archives:
        message = _("The upload contains several PyTorch archives, such as %(names)s. Name one of them.")
        raise Invalid(message % {"names": ", ".join(map(_printable, archives[:3]))}, field="path")
    raise Invalid(_("No model found: a .onnx, .safetensors or .pt file is required."), field="path")


def _size_of(root: Path, names: Sequence[str]) -> int:
    """Bytes of the weights among some files; what went away meanwhile counts as nothing."""
    total = 0
    for name in names:
        if name.lower().endswith(MODEL):
            with suppress(OSError, files.OutsideRoot), os.fdopen(files.open_beneath(root, name), "rb") as file:
                total += os.fstat(file.fileno()).st_size
    return total


def _below(root: Path, path: str) -> Iterator[str]:
    """Yield the paths of the regular files in a folder below `root`; follows no link on the way.

    Its owner may put links there while it is read, and the server may be allowed to read more than they are.
    """
    steps = [os.fsencode(part) for part in PurePosixPath(path).parts]
    try:
        with paths.refusals(), trees.opened(root, steps) as folder:
            walk = trees.walk(folder, until=time.monotonic() + LOOK_S)
            for count, (at, name, status) in enumerate(walk, 1):
                if count > MAX_LISTED:
                    message = _("The folder contains more than %(limit)s files.") % {"limit": f"{MAX_LISTED:,}"}
                    raise Invalid(message, field="path")
                if stat.S_ISREG(status.st_mode) and at.depth < DEEPEST:
                    yield str(PurePosixPath(path, *(os.fsdecode(part) for part in at.parts()), os.fsdecode(name)))
    except trees.TooLong:
        message = _("The folder has too many entries. Specify the folder of the model itself.")
        raise Invalid(message, field="path") from None


def _printable(path: str) -> str:
    """Return a path as printable text, whatever its bytes."""
    return file_names.shown_path(tuple(os.fsencode(part) for part in PurePosixPath(path).parts))


def _copy_files(root: Path, names: Mapping[str, str], into: Path) -> None:
    """Copy files below `root`, each under its new name; of files other than weights only small ones."""
    into.mkdir()
    if len(names) > MAX_FILES:
        raise ModelRefused(_("A model can have at most %(most)s files.") % {"most": MAX_FILES}, field="path")
    bytes_left = MAX_BYTES
    for name, new in names.items():
        weights = name.lower().endswith((*MODEL, *TORCH, *ARCHIVES[:-1]))
        with paths.refusals(), _open(root, name) as source:
            if not weights and os.fstat(source.fileno()).st_size > MAX_EXTRA_BYTES:
                continue
            target = into / new
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                bytes_left -= copy_rest(
                    source, target, max_bytes=bytes_left if weights else min(bytes_left, MAX_EXTRA_BYTES)
                )
            except TooLarge:
                message = _("A model can have at most %(most)s GiB.") % {"most": MAX_BYTES >> 30}
                raise ModelRefused(message, field="path") from None


def _open(root: Path, name: str) -> BinaryIO:
    try:
        return os.fdopen(files.open_beneath(root, name), "rb")
    except FileNotFoundError:
        message = _("A file disappeared while it was read: %(name)s.")
        raise NotFound(message % {"name": _printable(name)}) from None


def _unpacked(root: Path, path: str, into: Path) -> None:
    beside = into.with_name("archive")
    _copy_files(root, {path: "packed"}, beside)
    inspections.unpack(beside / "packed", path, into)
    files.remove_tree(beside)
