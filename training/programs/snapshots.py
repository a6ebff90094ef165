"""People's own code: taken as a snapshot, checked for its start file, never run from here."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import archives, file_names, files, trees
from aiplatform.lib.errors import DomainError, Invalid
from datasets.files import homes
from datasets.models import Upload
from training.programs.models import CodeSnapshot

LIMITS = archives.Limits(max_bytes=2 << 30, max_files=20_000)
LOOKING_S = 30.0


class BadCode(DomainError, code="bad_code", status=400, field="code_upload"): ...


class BadStartFile(DomainError, code="bad_start_file", status=400, field="start_file"): ...


def from_archive(*, owner: User, archive: Path, name: str) -> CodeSnapshot:
    """Unpack an archive into a new snapshot; a single folder around everything is taken off.

    Raises:
        ArchiveRefused: no archive, damaged, unsafe or larger than 2 GiB or 20,000 files unpacked.
    """
    snapshot = _new(owner, CodeSnapshot.Source.UPLOAD, name)
    unpacked = snapshot.path.with_name(f".{snapshot.id}.unpacking")
    unpacked.parent.mkdir(parents=True, exist_ok=True)
    try:
        archives.extract(archive, unpacked, limits=LIMITS, executables=True)
        inside = list(unpacked.iterdir())
        lone = inside[0] if len(inside) == 1 and inside[0].is_dir() else unpacked
        lone.rename(snapshot.path)
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
    return _counted(snapshot)


@contextmanager
def spooled(blocks: Iterable[bytes]) -> Iterator[Path]:
    """A temporary file of what came with a request, for as long as the block lasts."""
    folder = Path(settings.DATA_ROOT) / "code"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".", suffix=".archive") as file:
        for block in blocks:
            file.write(block)
        file.flush()
        yield Path(file.name)


def from_sent_file(sent: UploadedFile, owner: User) -> CodeSnapshot:
    """A snapshot of an archive that came with the request itself."""
    name = sent.name or "code"
    if isinstance(sent, TemporaryUploadedFile):
        return from_archive(owner=owner, archive=Path(sent.temporary_file_path()), name=name)
    with spooled(sent.chunks()) as path:
        return from_archive(owner=owner, archive=path, name=name)


def from_upload(*, owner: User, upload: Upload) -> CodeSnapshot:
    """A snapshot of an archive that came by a resumable upload.

    Raises:
        BadCode: the upload has not arrived whole yet.
        ArchiveRefused: see `from_archive`.
    """
    if upload.state == Upload.State.OPEN:
        raise BadCode(_("This upload is not complete yet."))
    return from_archive(owner=owner, archive=upload.file, name=upload.filename or upload.id)


def from_home(*, owner: User, folder: str) -> CodeSnapshot:
    """Copy a folder of the person's home; links and special files are left out.

    Raises:
        BadCode: no such folder, outside of the home, or too large.
    """
    snapshot = _new(owner, CodeSnapshot.Source.HOME, folder)
    copying = snapshot.path.with_name(f".{snapshot.id}.copying")
    try:
        with trees.opened(homes.home_of(owner), file_names.parse(folder)) as source:
            _check_size(source)
            copying.mkdir(parents=True)
            _copy(source, copying)
        copying.rename(snapshot.path)
    except (FileNotFoundError, NotADirectoryError):
        raise BadCode(_("This folder does not exist in your home folder."), field="home_path") from None
    except (files.OutsideRoot, Invalid) as exc:
        raise BadCode(exc.message, field="home_path") from None
    except trees.TooLong:
        raise BadCode(_many(), field="home_path") from None
    except OSError as exc:
        raise BadCode(_("The folder could not be read: %(why)s.") % {"why": exc.strerror}, field="home_path") from exc
    finally:
        shutil.rmtree(copying, ignore_errors=True)
    return _counted(snapshot)


def copy_for(owner: User, snapshot: CodeSnapshot) -> CodeSnapshot:
    """The snapshot as one of this person's own: itself, or a copy that shares its files, which never change."""
    if snapshot.owner_id == owner.pk:
        return snapshot
    copied = _new(owner, snapshot.source, snapshot.origin)
    copying = copied.path.with_name(f".{copied.id}.copying")
    try:
        shutil.copytree(snapshot.path, copying, copy_function=_link_or_copy, symlinks=True)
        copying.rename(copied.path)
    finally:
        shutil.rmtree(copying, ignore_errors=True)
    return _counted(copied)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another disk, or a folder that knows no links
        shutil.copy2(source, target, follow_symlinks=False)


def _check_size(source: int) -> None:
    """Refuse a folder that is too large for a snapshot, before anything is copied."""
    count = size = 0
    for folder, _name, info in trees.walk(source, until=time.monotonic() + LOOKING_S):
        if stat.S_ISREG(info.st_mode):
            count, size = count + 1, size + info.st_size
        if count > LIMITS.max_files:
            raise BadCode(_many(), field="home_path")
        if size > LIMITS.max_bytes:
            raise BadCode(_("The folder is larger than 2 GiB."), field="home_path")
        if folder.depth > files.MAX_DEPTH:
            message = _("Folders are nested more than %(limit)s levels deep.") % {"limit": files.MAX_DEPTH}
            raise BadCode(message, field="home_path")


def _many() -> str:
    return _("The folder contains more than %(limit)s files.") % {"limit": f"{LIMITS.max_files:,}"}


def _copy(source: int, target: Path) -> None:
    """Copy the regular files of a folder that a job may be writing to."""
    left = LIMITS.max_bytes
    for folder, name, info in trees.walk(source):
        if not stat.S_ISREG(info.st_mode) or folder.depth > files.MAX_DEPTH:
            continue
        parts = folder.parts()
        into = target.joinpath(*map(os.fsdecode, parts))
        into.mkdir(parents=True, exist_ok=True)
        try:
            with trees.opened(source, parts) as here:
                opened = trees.open_file(here, name)
        except (FileNotFoundError, files.OutsideRoot):  # the job is at work
            continue
        with os.fdopen(opened, "rb") as file, (into / os.fsdecode(name)).open("wb") as out:
            left -= _copied(file, out, left)
            os.fchmod(out.fileno(), 0o755 if info.st_mode & stat.S_IXUSR else 0o644)


def _copied(file: IO[bytes], out: IO[bytes], max_bytes: int) -> int:
    """Copy a file that may grow meanwhile; return its bytes."""
    size = 0
    while block := file.read(files.CHUNK):
        size += len(block)
        if size > max_bytes:
            raise BadCode(_("The folder is larger than 2 GiB."), field="home_path")
        out.write(block)
    return size


def check_start_file(snapshot: CodeSnapshot, start_file: str) -> str:
    """The start file as a clean relative path.

    Raises:
        BadStartFile: not a `.py` file inside the code, or a link, or a name that looks like an option.
    """
    path = PurePosixPath(start_file.strip().replace("\\", "/"))
    name = str(path)
    if not start_file.strip() or path.is_absolute() or ".." in path.parts:
        raise BadStartFile(_("The entry point must be a path inside your code, for example train.py."))
    if any(part.startswith("-") for part in path.parts) or not name.isprintable():
        raise BadStartFile(_("The name of the start file must not start with a dash or contain control characters."))
    if path.suffix != ".py":
        raise BadStartFile(_("The entry point must be a Python file ending in .py."))
    here = snapshot.path
    for part in path.parts:
        here = here / part
        try:
            mode = here.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            raise BadStartFile(_not_there(snapshot, name)) from None
        if stat.S_ISLNK(mode):
            raise BadStartFile(_("The entry point must not be a link."))
    if not stat.S_ISREG(mode):
        raise BadStartFile(_not_there(snapshot, name))
    return name


def _not_there(snapshot: CodeSnapshot, name: str) -> str:
    there = [path for path in files.walk_beneath(snapshot.path) if path.endswith(".py")][:8]
    if not there:
        return _("The code has no file %(name)s and no other Python file.") % {"name": name}
    return _("The code has no file %(name)s. Available files: %(there)s.") % {
        "name": name,
        "there": ", ".join(there),
    }


def _new(owner: User, source: str, origin: str) -> CodeSnapshot:
    return CodeSnapshot(id=secrets.token_hex(16), owner=owner, source=source, origin=origin[-255:])


def _counted(snapshot: CodeSnapshot) -> CodeSnapshot:
    names = list(files.walk_beneath(snapshot.path))
    if not names:
        shutil.rmtree(snapshot.path, ignore_errors=True)
        raise BadCode(_("The archive contains no files."))
    snapshot.files = len(names)
    snapshot.size_bytes = files.tree_size(snapshot.path)
    snapshot.save(force_insert=True)
    return snapshot
