"""Files that scripts send: below the outputs of the job that they belong to, else in a folder of their own.

A job may write into its outputs while the platform does, so every step goes by descriptors and through no link.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db.models import F, Sum
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform import env
from aiplatform.lib import disk, file_names, files, trees
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed
from datasets.files import paths
from training.experiments.models import Run
from training.experiments.tracking import refusals
from training.experiments.tracking.callers import Caller
from training.experiments.tracking.models import LoggedModel, Reported
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.execution import job_users
from workers.jobs.output import files as outputs

FOLDER = "mlflow"  # below the outputs of a job
OWN = "tracking"  # below the data root, of what belongs to no job
DEEPEST, MAX_FILES, MAX_LISTED = 32, 20_000, 5000
BLOCK = 1 << 20
Parts = tuple[bytes, ...]


class NoRoom(DomainError, code="quota_exceeded", status=507):
    """A person keeps as many bytes of files as they may."""


@dataclass(frozen=True)
class Owner:
    """What files belong to: a run, or a model that a script logged."""

    row: Reported | LoggedModel
    uid: str
    user: User
    job: Job | None

    def folders(self) -> list[Path]:
        """Where its files may lie, the newest attempt first."""
        if self.job is None:
            return [own_folder(self.uid)]
        numbers = outputs.attempts(self.job)
        return [RunDir.for_attempt(self.job.pk, number).outputs / FOLDER / self.uid for number in numbers]


@dataclass(frozen=True)
class Entry:
    name: str
    is_folder: bool
    size_bytes: int


def own_folder(uid: str) -> Path:
    """The folder of a run or a model without a job."""
    return Path(settings.DATA_ROOT) / OWN / uid


def find(caller: Caller, path: str, *, to_change: bool = False) -> tuple[Owner, Parts]:
    """What a path of clients begins with, as runs/UID or models/UID, and the steps below it.

    Raises:
        Missing: nothing of this id, or nothing for this caller.
        NotAllowed: it is for reading.
        Invalid: a path that is none, or leads out.
    """
    kind, _slash, rest = path.strip("/").partition("/")
    uid, _slash, below = rest.partition("/")
    parts = parse(below)
    if kind == "models":
        return of_model(caller, uid, to_change=to_change), parts
    if kind == "runs":
        run = caller.run_to_change(uid) if to_change else caller.run(uid)
        return of_run(run), parts
    raise refusals.Missing(_("No files at %(path)s.") % {"path": path[:200]})


def of_run(run: Run) -> Owner:
    """The files of a run."""
    report = getattr(run, "reported", None) or Reported.objects.get_or_create(run=run, defaults={"job": run.job})[0]
    return Owner(report, run.uid, run.owner, _job_of(report.job))


def of_model(caller: Caller, uid: str, *, to_change: bool = False) -> Owner:
    """The files of a model that a script logged.

    Raises:
        Missing, NotAllowed: see `find`.
    """
    model = LoggedModel.objects.select_related("owner", "run__reported__job", "run__job").filter(uid=uid).first()
    if model is None or not may_read(caller, model):
        raise refusals.no_model(uid)
    if to_change and not may_change(caller, model):
        raise NotAllowed(_("This model belongs to another user; your access is read-only."))
    report = getattr(model.run, "reported", None)
    job = model.run.job if model.run and model.run.job else report.job if report else None
    return Owner(model, model.uid, model.owner, _job_of(job))


def may_read(caller: Caller, model: LoggedModel) -> bool:
    """A model is for those who see its run."""
    if model.owner_id == caller.user.pk:
        return True
    return model.run is not None and caller.runs().filter(pk=model.run.pk).exists()


def may_change(caller: Caller, model: LoggedModel) -> bool:
    if caller.token and model.run is not None:
        with contextlib.suppress(NotAllowed, refusals.Missing):
            return bool(caller.run_to_change(model.run.uid))
        return False
    return model.owner_id == caller.user.pk


def _job_of(job: Job | None) -> Job | None:
    """The job whose outputs hold the files: one that is itself a run. An environment's are for what it is."""
    return job if job is not None and Run.objects.filter(job=job).exists() else None


def parse(path: str) -> Parts:
    """The steps of a path below a run, as they stand there.

    Raises:
        Invalid: a step that is empty, leads up or could not be shown, or too many.
    """
    if not path:
        return ()
    steps = tuple(os.fsencode(step) for step in path.strip("/").split("/"))
    if len(steps) > DEEPEST or any(step in {b"", b".", b".."} or b"\\" in step for step in steps):
        raise Invalid(_("The path leaves the permitted folder."), field="path")
    return tuple(file_names.check_new(step, field="path") for step in steps)


def write_file(owner: Owner, parts: Parts, body: IO[bytes], size_bytes: int) -> None:
    """Write a file atomically; an existing one is replaced.

    Raises:
        Invalid, NameTaken, Closed: what stands in the way.
        NoRoom, DiskFull: there is no room.
    """
    if not parts:
        raise Invalid(_("Enter the name of the file."), field="path")
    _require_room(owner, size_bytes)
    uid = job_users.uid_of(owner.user.pk) if owner.job else 0
    root, first = _root(owner)
    hidden = f".{secrets.token_hex(8)}.partial".encode()
    with paths.refusals(), _made(root, (*first, *parts[:-1]), uid) as folder:
        before = _size(folder, parts[-1])
        try:
            with _opened_new(folder, hidden) as file:
                shutil.copyfileobj(body, file, BLOCK)
                size = file.tell()
                if uid:
                    os.fchown(file.fileno(), uid, uid)
            os.replace(hidden, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(hidden, dir_fd=folder)
            raise
    new = 0 if before is not None else 1
    counted = type(owner.row)._default_manager.filter(pk=owner.row.pk)
    counted.update(files=F("files") + new, file_bytes=F("file_bytes") + max(size - (before or 0), 0))


def _root(owner: Owner) -> tuple[Path, Parts]:
    """A folder that is there and no job can replace, and the steps from it to the owner's files."""
    if owner.job is None:
        folder = own_folder("")
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        return folder, (owner.uid.encode(),)
    run = RunDir.for_attempt(owner.job.pk, owner.job.attempt_number)
    if not run.outputs.is_dir():
        raise Invalid(_("The job of this run has not started, or its files were deleted."), field="path")
    return run.path, (run.outputs.name.encode(), FOLDER.encode(), owner.uid.encode())


def _require_room(owner: Owner, size_bytes: int) -> None:
    if owner.row.files >= MAX_FILES:
        raise NoRoom(_("A run can have at most %(most)s files. Send them as one archive.") % {"most": MAX_FILES})
    if disk.has_no_room(Path(settings.DATA_ROOT)):
        raise disk.DiskFull()
    if owner.job is None and env.TRACKING_QUOTA_BYTES and used_by(owner.user) + size_bytes > env.TRACKING_QUOTA_BYTES:
        message = _(
            "Files of runs without a job can use %(most)s bytes of your quota. Delete runs that you do not need."
        )
        raise NoRoom(message % {"most": f"{env.TRACKING_QUOTA_BYTES:,}"})


def used_by(user: User) -> int:
    """Bytes that files of a person's runs without a job take."""
    own = Reported.objects.filter(run__owner=user, run__job=None).aggregate(all=Sum("file_bytes"))["all"] or 0
    models = LoggedModel.objects.filter(owner=user).aggregate(all=Sum("file_bytes"))["all"] or 0
    return int(own + models)


@contextmanager
def _made(root: Path, parts: Sequence[bytes], uid: int) -> Iterator[int]:
    """A descriptor of a folder below `root`, made with those above it where they are not there."""
    here = trees.open_folder(root)
    try:
        for name in parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=here)
                if uid:
                    os.chown(name, uid, uid, dir_fd=here, follow_symlinks=False)
            below = trees.open_folder(here, (name,))
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


@contextmanager
def _opened_new(folder: int, name: bytes) -> Iterator[IO[bytes]]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o644, dir_fd=folder), "wb") as file:
        yield file
        file.flush()


def _size(folder: int, name: bytes) -> int | None:
    try:
        info = trees.stat_entry(folder, name)
    except FileNotFoundError:
        return None
    return info.st_size if stat.S_ISREG(info.st_mode) else 0


def listed(owner: Owner, parts: Parts) -> list[Entry]:
    """Return the entries of an owner's folder, over all attempts; [] if the folder does not exist."""
    entries: dict[str, Entry] = {}
    for root in owner.folders():
        with contextlib.suppress(OSError, files.OutsideRoot), trees.opened(root, parts) as folder:
            for name, info in trees.entries(folder):
                is_folder = stat.S_ISDIR(info.st_mode)
                if (is_folder or stat.S_ISREG(info.st_mode)) and not _is_partial(name):
                    text = outputs.readable(os.fsdecode(name))
                    entries.setdefault(text, Entry(text, is_folder, 0 if is_folder else info.st_size))
                if len(entries) >= MAX_LISTED:
                    break
    return sorted(entries.values(), key=lambda entry: entry.name)


def _is_partial(name: bytes) -> bool:
    return name.startswith(b".") and name.endswith(b".partial")


def opened(owner: Owner, parts: Parts) -> int:
    """A descriptor of a file, for reading.

    Raises:
        Missing: there is none, or it is no regular file.
    """
    for root in owner.folders() if parts else ():
        with contextlib.suppress(OSError, files.OutsideRoot), trees.opened(root, parts[:-1]) as folder:
            return trees.open_file(folder, parts[-1])
    raise refusals.Missing(_("No files at %(path)s.") % {"path": file_names.shown_path(parts)[:200]})
